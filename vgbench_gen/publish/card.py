"""The dataset card: front matter that the Hub reads, and a text for people, both from what was measured."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from vgbench_gen.core.types import QUESTION_TYPES
from vgbench_gen.publish.audit_section import audit_section
from vgbench_gen.publish.bare import Bare, how
from vgbench_gen.publish.baselines import baselines
from vgbench_gen.publish.data_files import CANARY, Part
from vgbench_gen.publish.examples import Example
from vgbench_gen.publish.hard import vote_section
from vgbench_gen.publish.licences import Decision
from vgbench_gen.publish.release import ALL, HARD, TRAIN, Release, tasks_in_order
from vgbench_gen.publish.sources import info_of, title_of
from vgbench_gen.publish.words import name_of, page, share, table, word
from vgbench_gen.store.schema import PUBLISHED
from vgbench_gen.text.render import templates_root

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_CC0 = "cc0-1.0"
_HUB_LICENCES = {_CC0: "cc0-1.0", "mit": "mit"}  # ids of rows -> the Hub's own ids


def card(
    release: Release, parts: Sequence[Part], decisions: Sequence[Decision], missing: Bare, examples: Sequence[Example]
) -> str:
    """`README.md` of the published set.

    Args:
        decisions: of the licence gate, over the benchmark and the training data.
        missing: questions of the benchmark without their images.
        examples: to show.

    Raises:
        ConfigError: a template lacks a slot, or has one too many.
    """
    counts, options = release.counts, release.options
    tasks = tasks_in_order(counts)
    folder = options.repo.partition("/")[2]
    slots = {
        "front": front_matter(release, parts),
        "title": options.name,
        "repo": options.repo,
        "folder": folder,
        "summary": _summary(release),
        "contents": _contents(release, missing),
        "canary": release.canary,
        "first_task": release.main.configurations[tasks[0]],
        "configurations": _configurations(release, parts),
        "hydrate": f"vgbench hydrate build/{folder} --scenes /data/scans\n" if missing.scans else "",
        "examples": _examples(examples),
        "tasks": _tasks(release, tasks),
        "origins": _origins(release),
        "hard": vote_section(release.vote, release.options.hard is None),
        "columns": _columns(),
        "made": _made(release),
        "rebuild": _rebuild(release, folder),
        "audit": audit_section(release.audit),
        "baselines": baselines(release.folder, str(release.manifest.get("fingerprint", ""))),
        "licences": _licences(decisions, missing, options.repo, folder),
        "limits": _limits(release),
        "citation": _citation(release),
    }
    return page("card.md", slots)


def front_matter(release: Release, parts: Sequence[Part]) -> str:
    """The YAML block at the top: licence, tags, size, and where each configuration finds its files."""
    import yaml

    tasks = [part for part in parts if part.task]
    configs = [_config(ALL, [part for part in parts if part.config == ALL]) | {"default": True}]
    configs += [_config(part.config, [part]) for part in parts if part.config in (HARD, TRAIN)]
    configs += [_config(part.name, [part]) for part in tasks]
    total = sum(map(len, release.sets))
    block = {
        "pretty_name": release.options.name,
        "language": ["en"],
        **_licence_lines(release),
        "task_categories": ["visual-question-answering", "image-text-to-text"],
        "annotations_creators": ["machine-generated"],
        "size_categories": [next((name for limit, name in _SIZES if total < limit), "n>1M")],
        "tags": ["benchmark", "spatial-reasoning", "visual-geometry", "3d", "rgb-d", "vgbench-gen", "croissant"],
        "configs": configs,
    }
    return f"---\n{yaml.safe_dump(block, sort_keys=False, allow_unicode=True, width=10_000)}---"


def _config(name: str, parts: Sequence[Part]) -> dict[str, Any]:
    paths = [part.pattern for part in parts]
    return {
        "config_name": name,
        "data_files": [{"split": parts[0].split, "path": paths[0] if len(paths) == 1 else paths}],
    }


def _licence_lines(release: Release) -> dict[str, str]:
    ids = {licence for _, licence, _ in release.counts.origins}
    if len(ids) == 1 and (known := _HUB_LICENCES.get(next(iter(ids)))):
        return {"license": known}
    return {"license": "other", "license_name": "per-source", "license_link": "#licences-and-images"}


def _summary(release: Release) -> str:
    counts = release.counts
    version = str(release.manifest.get("code", {}).get("version", ""))
    numbers = {
        "items": f"{counts.total:,}",
        "images": f"{counts.images:,}",
        "tasks": str(len(tasks_in_order(counts))),
        "version": version or "of unknown version",
    }
    ours = any(info_of(source) for source, _ in counts.scenes)
    text = (
        word("summary.of_scans", **numbers, scenes=f"{sum(counts.scenes.values()):,}")
        if ours
        else word("summary.of_others", **numbers)
    )
    if {licence for _, licence in counts.scenes} == {_CC0}:
        layouts = ", ".join(title_of(source) for source, _ in counts.scenes)
        text += "\n\n" + word("summary.samples", sources=layouts)
    return text


def _contents(release: Release, missing: Bare) -> str:
    lines = [
        "[Load it](#load-it)", "[examples](#examples)", "[contents](#what-is-in-it)", "[making](#how-it-was-made)",
        "[conventions](#conventions)", "[audit](#audit)", "[licences and images](#licences-and-images)",
        "[limits](#limits)", "[citation](#citation)",
    ]  # fmt: skip
    line = " · ".join(lines)
    if missing.total:
        ways = [word("licences.scans", count=f"{missing.scans:,}")] if missing.scans else []
        ways += [how(name, rows) for name, rows in missing.imports.items()]
        numbers = {"count": f"{missing.total:,}", "share": share(missing.total, release.counts.total)}
        line += "\n\n" + word("licences.short", **numbers, how="; ".join(ways))
    return line


def _configurations(release: Release, parts: Sequence[Part]) -> str:
    rows: list[tuple[object, ...]] = []
    whole = [part for part in parts if part.config == ALL]
    rows.append((f"`{ALL}` (default)", f"`{whole[0].split}`", sum(p.rows for p in whole), word("configurations.all")))
    for part in parts:
        if part.config != ALL:
            key = release.vote.key if part.config == HARD and release.vote is not None else part.config
            rows.append((f"`{part.config}`", f"`{part.split}`", part.rows, word(f"configurations.{key}")))
    names = ", ".join(f"`{part.name}`" + (f" ({part.title})" if part.title else "") for part in whole)
    rows.append((names, f"`{whole[0].split}`", "see below", word("configurations.task")))
    return table(("configuration", "split", "questions", "what"), rows, right=[2])


def _tasks(release: Release, tasks: Sequence[str]) -> str:
    cells = release.counts.cells
    rows = [
        (f"`{task}`", name_of("tasks", task, " "), *(cells[task, form] or "" for form in QUESTION_TYPES),
         sum(cells[task, form] for form in QUESTION_TYPES))
        for task in tasks
    ]  # fmt: skip
    sums = [sum(cells[task, form] for task in tasks) or "" for form in QUESTION_TYPES]
    total = ("**all**", "", *sums, release.counts.total)
    return table(("task", "asked", "yes/no", "choice", "open", "all"), [*rows, total], right=[2, 3, 4, 5])


def _origins(release: Release) -> str:
    counts = release.counts
    total = counts.total
    by_source: dict[tuple[str, str], dict[str, int]] = {}
    for (source, licence, split), number in counts.origins.items():
        by_source.setdefault((source, licence), {})[split] = number
    rows = [
        (
            title_of(source) + (" (sample scenes)" if licence == _CC0 else ""),
            counts.scenes[source, licence],
            sum(splits.values()),
            share(sum(splits.values()), total),
            ", ".join(f"{split} {number:,}" for split, number in sorted(splits.items())),
        )
        for (source, licence), splits in sorted(by_source.items())
    ]
    heads = ("scans", "scenes", "questions", "share", "questions by official split of the scene")
    return table(heads, rows, right=[1, 2, 3])


def _columns() -> str:
    rows = [(f"`{c.name}`", c.type, c.meaning + (f" ({c.unit})" if c.unit else "")) for c in PUBLISHED.columns]
    return table(("column", "type", "meaning"), [*rows, (f"`{CANARY.name}`", CANARY.type, CANARY.meaning)])


def _made(release: Release) -> str:
    manifest = release.manifest
    counts, code = manifest.get("counts", {}), manifest.get("code", {})
    facts, rejects = int(counts.get("facts", 0)), int(counts.get("rejects", 0))
    lines = [word("made.text", rejects=f"{rejects:,}", drafts=f"{facts + rejects:,}")] if facts else []
    lines.append(
        word(
            "made.fingerprint",
            fingerprint=release.main.fingerprint,
            version=str(code.get("version", "unknown")),
            source=str(code.get("source", "unknown")),
        )
    )
    return "\n\n".join(lines)


def _rebuild(release: Release, folder: str) -> str:
    if isinstance(release.manifest.get("recipe"), dict):
        return word("made.rebuild", folder=folder)
    return ""


def _examples(examples: Sequence[Example]) -> str:
    if not examples:
        return word("examples.none")
    blocks = [word("examples.text")]
    for each in examples:
        place = word("examples.sample") if each.licence == _CC0 else title_of(each.source)
        lines = [
            f"**`{each.task}`** ({place}) — {_plain(each.question)}",
            f"![{each.task}]({each.picture})",
        ]
        lines += [f"- ({letter}) {_plain(text)}" for letter, text in each.options]
        lines += ["", f"Answer: **{_plain(each.answer)}**"]
        blocks.append("\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:]))
    return "\n\n".join(blocks)


def _plain(text: str) -> str:
    """A text of a row in one line of Markdown, with nothing in it that means something there."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def _licences(decisions: Sequence[Decision], missing: Bare, repo: str, folder: str) -> str:
    rows = []
    for decision in decisions:
        policy = decision.policy
        reason = word("licences.by_flag", licence=policy.licence) if decision.by_flag else policy.reason
        stay = "licences.stay" if policy.kind == "scans" else "licences.stay_with_authors"
        images = word("licences.travel") if decision.pixels else word(stay)
        linked = f"[{policy.terms}]({policy.url})" if policy.url else policy.terms
        rows.append((title_of(policy.name), linked, decision.rows, images, reason))
    ours = all(decision.policy.kind in ("scans", "made") for decision in decisions)
    intro = word("licences.intro" if ours else "licences.intro_of_others")
    blocks = [intro, table(("images from", "terms", "questions", "images", "why"), rows, right=[2])]
    if missing.scans:
        blocks.append(word("licences.hydrate", count=f"{missing.scans:,}", repo=repo, folder=folder))
    for name, number in missing.imports.items():
        blocks.append(word("licences.again" if name else "licences.nowhere", count=f"{number:,}", **_named(name)))
    notices = [decision.policy.notice for decision in decisions if decision.pixels and decision.policy.notice]
    if notices:
        blocks.append("\n".join([word("licences.notices"), "", *(f"- {notice}" for notice in notices)]))
    return "\n\n".join(blocks)


def _named(name: str) -> dict[str, str]:
    return {"name": name} if name else {}


def _limits(release: Release) -> str:
    lines = [word(f"limits.{key}") for key in ("scans", "instrument", "indoor")]
    real = _scanned(release)
    lines += [info.caution for info in map(info_of, real) if info is not None and info.caution]
    lines += [word("limits.people")] if real else []
    return "\n".join(f"- {line}" for line in lines)


def _citation(release: Release) -> str:
    infos = [info for info in map(info_of, _scanned(release)) if info is not None]
    entries = [citations()["benchmark"], *(info.citation for info in infos if info.citation)]
    return "```bibtex\n" + "\n\n".join(entry.strip() for entry in entries) + "\n```"


def _scanned(release: Release) -> list[str]:
    """Names of the sources that hold real scans, sorted."""
    return sorted({source for source, licence in release.counts.scenes if licence != _CC0})


def citations() -> dict[str, Any]:
    """`templates/cards/citations.toml`."""
    return tomllib.loads((templates_root() / "cards" / "citations.toml").read_text("utf-8"))
