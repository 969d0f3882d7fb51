"use strict";
// A view of a question in space: points of its frames, cameras, boxes and marked points, turned by mouse, touch or keys.
// It draws into a plain 2D canvas with a depth buffer of its own: no WebGL, so that it is the same in every browser,
// and images may come from disk, which WebGL refuses.
(() => {
  const INK = { right: "#1fd1a0", wrong: "#ff8a3c", plain: "#7cc0ff" };
  const GROUND = [20, 22, 26];
  const LIMIT = Math.PI / 2 - 0.01;
  const PLANE = 0.6; // meters from a camera to its image at most
  const ROOM = 0.86; // of the canvas that is filled: the rest is for labels

  const sub = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
  const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };
  const along = (a, b, k) => [a[0] + k * b[0], a[1] + k * b[1], a[2] + k * b[2]];

  // {low, step, n, data} of a cloud -> {at: Float32Array (n * 3), rgb: Uint8Array (n * 3)}
  function unpack(cloud) {
    const text = atob(cloud.data);
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const n = Math.min(cloud.n, Math.floor(bytes.length / 9));
    const at = new Float32Array(3 * n);
    for (let k = 0; k < 3 * n; k += 1) at[k] = cloud.low[k % 3] + cloud.step[k % 3] * (bytes[2 * k] + 256 * bytes[2 * k + 1]);
    return { n, at, rgb: bytes.subarray(6 * n, 9 * n) };
  }

  const centreOf = (camera) => [camera.pose[3], camera.pose[7], camera.pose[11]];
  const axisOf = (camera, k) => [camera.pose[k], camera.pose[4 + k], camera.pose[8 + k]];
  // The corners of an image at a depth, in the world: top left, top right, bottom right, bottom left.
  function cornersOf(camera, depth) {
    const [fx, fy, cx, cy] = camera.K;
    const [w, h] = camera.size;
    return [[-0.5, -0.5], [w - 0.5, -0.5], [w - 0.5, h - 0.5], [-0.5, h - 0.5]].map(([u, v]) => {
      const [x, y] = [((u - cx) / fx) * depth, ((v - cy) / fy) * depth];
      return along(along(along(centreOf(camera), axisOf(camera, 0), x), axisOf(camera, 1), y), axisOf(camera, 2), depth);
    });
  }

  // space: as the record of an item has it. images: loaded <img> by place. Returns {canvas, add, look, draw}.
  function show(canvas, space, images, name) {
    const up = unit(space.up);
    const east = unit(cross(Math.abs(up[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0], up));
    const north = cross(up, east);
    const clouds = [];
    const centres = space.cameras.map(centreOf);
    let view;
    // Before it is told, nothing says which option is right, and what the wrong ones mean is not drawn.
    let told = false;
    const isWrong = (one) => told && one.right === false;
    const inkOf = (one) => (!told || one.right === null ? INK.plain : one.right ? INK.right : INK.wrong);
    const listCameras = () => space.cameras.filter((camera) => told || camera.image >= 0);
    const listBoxes = () => space.boxes.filter((box) => told || box.right);

    // From behind and above the first camera, as near as all that is drawn fits in.
    function goHome() {
      const look = axisOf(space.cameras[0], 2);
      view = { target: [0, 0, 0], yaw: Math.atan2(dot(look, north), dot(look, east)) + 0.45, pitch: 0.5, roll: 0, distance: 0, focal: 1.1, home: true };
      const { forward, right, down } = basis();
      const shown = listCameras();
      const things = [...shown.map(centreOf), ...space.points.map((p) => p.at), ...listBoxes().flatMap((box) => box.corners)];
      const all = [...things, ...shown.flatMap((camera) => cornersOf(camera, PLANE))];
      if (things.length === 1) all.push(along(things[0], look, 2)); // a camera alone: with what it sees
      view.target = [0, 0, 0];
      for (const axis of [forward, right, down]) {
        const places = all.map((p) => dot(p, axis));
        view.target = along(view.target, axis, (Math.min(...places) + Math.max(...places)) / 2);
      }
      const [width, height] = [canvas.clientWidth || 1, canvas.clientHeight || 1];
      const room = (0.5 * ROOM) / (view.focal * Math.min(width, height));
      view.distance = Math.max(0.8, ...all.map((p) => {
        const d = sub(p, view.target);
        return Math.max(Math.abs(dot(d, right)) / (room * width), Math.abs(dot(d, down)) / (room * height)) - dot(d, forward);
      }));
      draw();
    }
    function basis() {
      const c = Math.cos(view.pitch);
      const forward = unit(along(along(along([0, 0, 0], east, c * Math.cos(view.yaw)), north, c * Math.sin(view.yaw)), up, -Math.sin(view.pitch)));
      const level = unit(cross(forward, up));
      const right = along(along([0, 0, 0], level, Math.cos(view.roll)), cross(forward, level), Math.sin(view.roll));
      return { forward, right, down: cross(forward, right), eye: along(view.target, forward, -view.distance) };
    }
    // Pixels for a tangent of one, in a canvas of this size; the image looked through stands in it whole.
    function measureFocal(width, height) {
      if (!view.through) return view.focal * Math.min(width, height);
      const { K: [fx, fy, cx, cy], size: [w, h] } = view.through;
      return ROOM * Math.min((0.5 * width * fx) / Math.max(cx + 0.5, w - 0.5 - cx), (0.5 * height * fy) / Math.max(cy + 0.5, h - 0.5 - cy));
    }
    function makeProject(width, height) {
      const { forward, right, down, eye } = basis();
      const focal = measureFocal(width, height);
      return (p) => {
        const d = sub(p, eye);
        const z = dot(d, forward);
        return [width / 2 + (focal * dot(d, right)) / z, height / 2 + (focal * dot(d, down)) / z, z];
      };
    }

    function draw() {
      const ratio = Math.min(2, devicePixelRatio || 1);
      const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
      const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      const context = canvas.getContext("2d");
      const { forward, right, down, eye } = basis();
      const focal = measureFocal(width, height);
      const project = makeProject(width, height);
      drawClouds(context, width, height, focal, eye, forward, right, down);
      const line = (points, ink, dash, wide) => {
        for (let k = 0; k + 1 < points.length; k += 1) {
          const [a, b] = clip(points[k], points[k + 1], eye, forward);
          if (!a) continue;
          const [p, q] = [project(a), project(b)];
          for (const [color, size] of [["#0b0d10cc", wide + 2.5], [ink, wide]]) {
            context.strokeStyle = color;
            context.lineWidth = size * ratio;
            context.setLineDash(dash && color === ink ? [7 * ratio, 5 * ratio] : []);
            context.beginPath();
            context.moveTo(p[0], p[1]);
            context.lineTo(q[0], q[1]);
            context.stroke();
          }
        }
        context.setLineDash([]);
      };
      const taken = [];
      const text = (at, words, ink) => {
        const [x, y, z] = project(at);
        if (!words || z < 0.02) return;
        context.font = `600 ${13 * ratio}px system-ui, sans-serif`;
        const wide = context.measureText(words).width + 10 * ratio;
        const left = Math.max(0, Math.min(width - wide, x + 7 * ratio));
        let top = Math.max(0, y - 26 * ratio);
        while (taken.some(([l, t, r]) => left < r && left + wide > l && Math.abs(top - t) < 20 * ratio)) top += 21 * ratio;
        taken.push([left, top, left + wide]);
        context.fillStyle = "#0b0d10d9";
        context.fillRect(left, top, wide, 19 * ratio);
        context.fillStyle = ink;
        context.fillText(words, left + 5 * ratio, top + 14 * ratio);
      };
      const size = PLANE * Math.max(0.25, Math.min(1, view.distance / 3));
      // Through a camera its own image is looked at: others would stand before it. What is true lies on top.
      const cameras = view.through ? [view.through] : listCameras();
      const [boxes, points] = [listBoxes(), space.points].map((all) => [...all].sort((a, b) => Number(a.right) - Number(b.right)));
      for (const camera of cameras) {
        const corners = cornersOf(camera, size);
        const ink = inkOf(camera);
        if (images[camera.image]) picture(context, images[camera.image], corners.map(project));
        for (const corner of corners) line([centreOf(camera), corner], ink, isWrong(camera), 1.6);
        line([...corners, corners[0]], ink, isWrong(camera), 1.6);
      }
      for (const box of boxes) {
        const c = box.corners;
        line([c[0], c[1], c[2], c[3], c[0], c[4], c[5], c[6], c[7], c[4]], inkOf(box), isWrong(box), 2.2);
        for (const k of [1, 2, 3]) line([c[k], c[k + 4]], inkOf(box), isWrong(box), 2.2);
      }
      const ends = boxes.filter((box) => told && box.right).map((box) => middle(box.corners));
      if (ends.length === 2) {
        line(ends, INK.right, false, 2.2);
        text(middle(ends), `${Math.hypot(...sub(ends[0], ends[1])).toFixed(2)} m`, INK.right);
      }
      for (const point of points) {
        const [x, y, z] = project(point.at);
        if (z < 0.02) continue;
        context.beginPath();
        const r = 5.5 * ratio;
        if (isWrong(point)) {
          for (const [dx, dy] of [[-r, 0], [0, -r], [r, 0], [0, r]]) context.lineTo(x + dx, y + dy);
          context.closePath();
        } else context.arc(x, y, r, 0, 7);
        context.fillStyle = inkOf(point);
        context.fill();
        context.lineWidth = 1.5 * ratio;
        context.strokeStyle = "#0b0d10";
        context.stroke();
      }
      for (const point of points) text(point.at, told || space.points.every((p) => p.right) ? point.label : "", inkOf(point));
      for (const box of boxes) text(middle(box.corners), box.label, inkOf(box));
      for (const camera of cameras) text(centreOf(camera), camera.name, inkOf(camera));
    }
    const middle = (points) => [0, 1, 2].map((k) => points.reduce((sum, p) => sum + p[k], 0) / points.length);

    // The part of a stretch that lies before the eye; [null] where none does.
    function clip(a, b, eye, forward) {
      const near = 0.02;
      const [p, q] = [dot(sub(a, eye), forward), dot(sub(b, eye), forward)];
      if (p < near && q < near) return [null];
      const cut = along(a, sub(b, a), (near - p) / (q - p || 1));
      return p < near ? [cut, b] : q < near ? [a, cut] : [a, b];
    }

    function drawClouds(context, width, height, focal, eye, forward, right, down) {
      const image = context.createImageData(width, height);
      const pixels = new Uint32Array(image.data.buffer);
      pixels.fill((255 << 24) | (GROUND[2] << 16) | (GROUND[1] << 8) | GROUND[0]);
      const depth = new Float32Array(width * height).fill(Infinity);
      for (const { n, at, rgb } of clouds) {
        for (let k = 0; k < n; k += 1) {
          const x = at[3 * k] - eye[0];
          const y = at[3 * k + 1] - eye[1];
          const w = at[3 * k + 2] - eye[2];
          const z = x * forward[0] + y * forward[1] + w * forward[2];
          if (z < 0.05) continue;
          const u = width / 2 + (focal * (x * right[0] + y * right[1] + w * right[2])) / z;
          const v = height / 2 + (focal * (x * down[0] + y * down[1] + w * down[2])) / z;
          const r = Math.max(1, Math.min(9, (0.017 * focal) / z));
          const color = (255 << 24) | (rgb[3 * k + 2] << 16) | (rgb[3 * k + 1] << 8) | rgb[3 * k];
          const [left, rite, top, low] = [Math.max(0, Math.ceil(u - r)), Math.min(width - 1, Math.floor(u + r)), Math.max(0, Math.ceil(v - r)), Math.min(height - 1, Math.floor(v + r))];
          for (let j = top; j <= low; j += 1) {
            for (let i = left; i <= rite; i += 1) {
              const place = j * width + i;
              if (z < depth[place]) { depth[place] = z; pixels[place] = color; }
            }
          }
        }
      }
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.putImageData(image, 0, 0);
    }

    // An image on its plane, as two triangles: near enough for planes as small as these.
    function picture(context, image, [a, b, c, d]) {
      if (!image.naturalWidth || [a, b, c, d].some((p) => p[2] < 0.05)) return;
      const [w, h] = [image.naturalWidth, image.naturalHeight];
      for (const [p, q, r, origin, ex, ey] of [[a, b, d, a, [b, a], [d, a]], [c, d, b, [b[0] + d[0] - c[0], b[1] + d[1] - c[1]], [c, d], [c, b]]]) {
        context.save();
        context.beginPath();
        context.moveTo(p[0], p[1]);
        context.lineTo(q[0], q[1]);
        context.lineTo(r[0], r[1]);
        context.closePath();
        context.clip();
        context.setTransform((ex[0][0] - ex[1][0]) / w, (ex[0][1] - ex[1][1]) / w, (ey[0][0] - ey[1][0]) / h, (ey[0][1] - ey[1][1]) / h, origin[0], origin[1]);
        context.globalAlpha = 0.9;
        context.drawImage(image, 0, 0);
        context.restore();
      }
    }

    // --- by hand -----------------------------------------------------------------------------------------------------

    let asked = false;
    const redraw = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; draw(); });
    };
    const turn = (dx, dy) => { view.home = false; view.yaw -= 0.008 * dx; view.pitch = Math.max(-LIMIT, Math.min(LIMIT, view.pitch + 0.008 * dy)); redraw(); };
    const zoom = (factor) => { view.home = false; view.distance = Math.max(0.15, Math.min(60, view.distance * factor)); redraw(); };
    const held = new Map();
    // A finger moves the page, unless a tap has taken hold of the view; the tap after that comes from beside it.
    canvas.addEventListener("click", (event) => { if (event.pointerType === "touch") canvas.classList.add("held"); });
    document.addEventListener("pointerdown", (event) => { if (event.target !== canvas) canvas.classList.remove("held"); });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" && !canvas.classList.contains("held")) return;
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, [event.clientX, event.clientY]);
    });
    canvas.addEventListener("pointermove", (event) => {
      const last = held.get(event.pointerId);
      if (!last) return;
      const now = [event.clientX, event.clientY];
      if (held.size === 1) turn(now[0] - last[0], now[1] - last[1]);
      else {
        const other = [...held].find(([id]) => id !== event.pointerId)[1];
        const apart = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
        zoom(apart(last) / apart(now));
      }
      held.set(event.pointerId, now);
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(Math.exp(0.0015 * event.deltaY)); }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const acts = { ArrowLeft: () => turn(-14, 0), ArrowRight: () => turn(14, 0), ArrowUp: () => turn(0, -14), ArrowDown: () => turn(0, 14), "+": () => zoom(0.85), "-": () => zoom(1.18), 0: goHome };
      if (!acts[event.key]) return;
      acts[event.key]();
      event.preventDefault();
      event.stopPropagation();
    });
    new ResizeObserver(redraw).observe(canvas);
    canvas.setAttribute("aria-label", name);
    goHome();
    return {
      add: (cloud) => { clouds.push(unpack(cloud)); redraw(); },
      count: () => clouds.reduce((sum, cloud) => sum + cloud.n, 0),
      home: goHome,
      above: () => { goHome(); view.pitch = LIMIT; view.home = false; redraw(); },
      // From where an image was taken, turned as its camera was: points and boxes lie on what the image shows of them.
      through: (k) => {
        const camera = space.cameras[k];
        const look = axisOf(camera, 2);
        view = { target: along(centreOf(camera), look, 2), yaw: Math.atan2(dot(look, north), dot(look, east)), pitch: -Math.asin(Math.max(-1, Math.min(1, dot(look, up)))), roll: 0, distance: 2, focal: 1.1, through: camera };
        const { right, down } = basis();
        view.roll = Math.atan2(dot(axisOf(camera, 0), down), dot(axisOf(camera, 0), right));
        redraw();
      },
      // Where a point of the world is drawn, in pixels of the page from the canvas's corner.
      place: (p) => makeProject(canvas.clientWidth, canvas.clientHeight)(p).slice(0, 2),
      tell: (wanted) => { told = wanted; if (view.home) goHome(); else redraw(); },
      redraw,
    };
  }

  self.VGBENCH_SPACE = { show, unpack };
})();
