#!/usr/bin/env bash
# From sample rooms to 20 steps of training on a CPU: build, mix, export, lint, loaders of trainers, canary, GRPO.
# Environment: VENV (.venv), DEMO (build/demo), OUT (build/train-demo), TRAINERS (llama-factory ms-swift trl).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv} DEMO=${DEMO:-build/demo} OUT=${OUT:-build/train-demo} TRAINERS=${TRAINERS-llama-factory ms-swift trl}
source tools/packages.sh
vgbench=$VENV/bin/vgbench
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2} HF_HUB_OFFLINE=1 PYTHONPATH=$PWD

say "sample rooms and rows"
"$vgbench" samples --small --out "$DEMO-scenes"
"$vgbench" build train --items 24 --scenes "$DEMO-scenes" --out "$OUT/all" --allow-short

say "two parts without a room in common"
cat >"$OUT/mix.toml" <<'TOML'
rows = 160
parts = { sft = 0.75, rl = 0.25 }
[[sources]]
dataset = "all"
TOML
rm -rf "$OUT/mix" "$OUT"/for-*
"$vgbench" mix "$OUT/mix.toml" --out "$OUT/mix" --allow-short

for trainer in $TRAINERS; do
  part=$([ "$trainer" = trl ] && echo rl || echo sft)
  say "the part $part for $trainer: written, checked, and read by its own loader"
  "$vgbench" export "$OUT/mix/$part" --to "$trainer" --family qwen2.5-vl --rationale short --out "$OUT/for-$trainer"
  "$vgbench" lint "$OUT/for-$trainer" --max-tokens 32768
  python=.venv-train-$trainer/bin/python
  case $trainer in
    ms-swift | llama-factory) how=(--own --work "$OUT/work") ;;
    *) how=(max_length=null) ;;
  esac
  if [ -x "$python" ]; then
    mkdir -p "$OUT/work"
    "$python" "tests/training/consumers/read_${trainer//-/_}.py" "${how[@]}" "$OUT/for-$trainer" 2>"$OUT/work/$trainer.log" |
      "$VENV/bin/python" -c 'import json, sys; found = json.loads(sys.stdin.readlines()[-1]); print({name: len(found[name]) for name in ("kept", "dropped", "raised")})'
  else
    say "no $python here; \`make trainers TRAINERS=$trainer\` makes it where the packages can be had"
  fi
done

say "a canary, learned through a sound pipeline and through one that shows the first picture only"
"$vgbench" export "$OUT/all" --to canary --out "$OUT/for-canary"
for fault in "" "first only"; do
  "$VENV/bin/python" -m tests.training.toy_learner "$OUT/for-canary" "$OUT/predictions.jsonl" ${fault:+--fault "$fault"}
  "$vgbench" lint "$OUT/for-canary" --canary "$OUT/predictions.jsonl" || [ -n "$fault" ]
done

if [ -x .venv-train-trl/bin/python ]; then
  say "20 steps of GRPO with a tiny model without weights"
  .venv-train-trl/bin/python tests/training/consumers/train_trl.py "$OUT/for-trl" 2>"$OUT/work/grpo.log" | tail -1
fi
