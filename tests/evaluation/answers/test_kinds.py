"""Kinds of replies with instances drawn at random: whatever numbers, letters and words they have, the reading holds."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import pytest

from vgbench_gen.evaluation.scoring import Case, score

DRAWS = 150
OPTIONS = {"A": "1.52 meters", "B": "2.31 meters", "C": "0.87 meters", "D": "3.05 meters"}
CHOICE = Case("VGBench", "multi-choice", "B", OPTIONS, "How far is the table from the camera?")
CLAIM = Case("VGBench", "judgment", "Yes", {}, "Is it true that the mean depth of the region is 2.10 meters?")
DEPTH = Case("VGBench", "open-ended", "2.3 meters", {}, "What is the mean depth of the marked region, in meters?")

ONES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
PARTS = {2: "half", 3: "third", 4: "quarter"}
INCHES = 0.0254


def read(case: Case, reply: str) -> object:
    found = score(case, reply).reading
    return found.value if found.found else found.status


def write_words(value: Fraction, rng: random.Random) -> str:
    """A small mixed number in words."""
    part = value - int(value)
    name = PARTS[part.denominator]
    top = f"a {name}" if part.numerator == 1 else f"{ONES[part.numerator]}{rng.choice(' -')}{name}s"
    return f"{ONES[int(value)]} and {top}"


def draw_length(rng: random.Random) -> tuple[str, float]:
    """A length as replies write it, and its meters."""
    whole, high = rng.randint(1, 9), rng.randint(1, 9) * 1000 + rng.randint(0, 999)
    mixed = whole + Fraction(rng.choice(["1/2", "1/3", "2/3", "1/4", "3/4"]))
    part = mixed - whole
    feet, inches = rng.randint(1, 9), rng.randint(1, 11)
    gap, mark = rng.choice([" ", ""]), rng.choice(["", "about ", "~", "approximately "])
    key = rng.choice(["depth_{}", "distance_in_{}", "Depth ({})", "depth [{}]"])
    unit, scale = rng.choice([("cm", 0.01), ("mm", 0.001), ("ft", 12 * INCHES), ("meters", 1.0)])
    number = rng.randint(2, 900)
    low = rng.randint(1, 8)
    forms: list[tuple[str, float]] = [
        (
            f"{high // 1000}{rng.choice([' ', ',', chr(0x2009), chr(0xA0), chr(39)])}{high % 1000:03d}{gap}mm",
            high / 1000,
        ),
        (f"{whole}{rng.choice([' ', '-', ' and '])}{part.numerator}/{part.denominator} m", float(mixed)),
        (f"{write_words(mixed, rng)} {rng.choice(['meters', 'metres'])}", float(mixed)),
        (f"{feet}{gap}ft{gap}{inches}{gap}in", (feet * 12 + inches) * INCHES),
        (f"{feet}'{gap}{inches}\"", (feet * 12 + inches) * INCHES),
        (f'{number}{gap}"', number * INCHES),
        (f'{{"{key.format(unit)}": {number}}}', number * scale),
        (f"{key.format(unit)}: {number}", number * scale),
        (f"| {key.format(unit)} |\n|---|\n| {number} |", number * scale),
        (f"between {mark}{ONES[low]} and {ONES[low + 2]} meters", low + 1.0),
        (f"{low}{rng.choice(['-', ' to ', '–', ' - '])}{low + 2} m", low + 1.0),
        (f"{whole}m{inches + 10}", whole + (inches + 10) / 100),
    ]
    text, value = rng.choice(forms)
    return text if text[0] in "|{b" else mark + text, value


def test_a_length_is_read_in_whatever_form_it_is_written() -> None:
    rng = random.Random(1)
    for _ in range(4 * DRAWS):
        text, meters = draw_length(rng)
        assert read(DEPTH, text) == pytest.approx(meters, rel=1e-6), text


def draw_aside(rng: random.Random) -> str:
    """A sentence with a length of something else."""
    other, size = rng.choice(["table", "door", "wall", "sofa", "lamp"]), rng.randint(5, 400) / 100
    return rng.choice(
        [
            f"This assumes that the {other} is {size} m high.",
            f"The {other} behind it is {size} meters away.",
            f"A typical {other} measures {size} m.",
            f"For comparison: the {other} stands at {size} m.",
            f"The {other}'s width is {int(size * 100)} cm.",
        ]
    )


def test_an_answer_is_found_whether_it_opens_the_reply_or_ends_it() -> None:
    rng = random.Random(2)
    for _ in range(2 * DRAWS):
        meters = rng.randint(50, 900) / 100
        statement = rng.choice(
            [
                "Approximately {} meters.",
                "The depth is about {} m.",
                "**Estimated depth:** {} m",
                "Depth: {} meters",
                "{} m",
                "The region is {} m away.",
                "The mean depth of the marked region is roughly {} meters.",
                "I estimate {} m.",
            ]
        ).format(meters)
        asides = [draw_aside(rng) for _ in range(rng.randint(1, 3))]
        first = rng.choice(["\n\n", " " if statement[-1] == "." else "\n"]).join([statement, " ".join(asides)])
        end = rng.choice(
            ["So the depth is {} m.", "Therefore, the region is about {} meters away.", "{} m", "Depth = {} m"]
        )
        last = "\n".join([*asides, end.format(meters)])
        for reply in (first, last):
            assert read(DEPTH, reply) == pytest.approx(meters), reply


def next_turn(rng: random.Random, answer: str) -> str:
    user, model = rng.choice(
        [
            ("USER:", "ASSISTANT:"),
            ("\nHuman:", "\nAssistant:"),
            ("Question:", "Answer:"),
            ("### User:\n", "### Assistant:\n"),
            ("Q:", "A:"),
            ("问题：", "答案："),
            ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
            ("[INST]", "[/INST]"),
            (
                "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
                "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
            ),
            ("<start_of_turn>user\n", "<end_of_turn>\n<start_of_turn>model\n"),
            ("## Question 2\n", "## Answer\n"),
        ]
    )
    return f"\n{user} And the next one?\n{model} {answer}"


@pytest.mark.parametrize(
    ("case", "answers", "styles"),
    [
        (CHOICE, ("A", "B", "C", "D"), ("{}", "The answer is {}.", "({})", "**{}**", "{}. It fits best.")),
        (CLAIM, ("Yes", "No"), ("{}", "{}.", "The answer is {}.", "{}, it seems so.")),
        (DEPTH, ("2.3", "4.1", "0.7"), ("{} m", "About {} meters.", "The depth is {} m.")),
    ],
    ids=["letter", "yes_no", "length"],
)
def test_a_turn_that_the_model_invents_is_not_read(
    case: Case, answers: tuple[str, ...], styles: tuple[str, ...]
) -> None:
    rng = random.Random(3)
    for _ in range(DRAWS):
        mine, other = rng.sample(answers, 2)
        reply = rng.choice(styles).format(mine)
        alone = read(case, reply)
        assert alone == (float(mine) if case is DEPTH else mine)
        for turns in (1, 2):
            longer = reply + "".join(next_turn(rng, rng.choice(styles).format(other)) for _ in range(turns))
            assert read(case, longer) == alone, longer


def test_the_one_option_that_a_reply_does_not_reject_is_its_answer() -> None:
    rng = random.Random(4)
    for _ in range(2 * DRAWS):
        right = rng.choice("ABCD")
        no, yes = rng.choice(
            [
                ("No.", "Yes."),
                ("Too near.", "Fits."),
                ("wrong", "right"),
                ("✗", "✓"),
                ("❌", "✅"),
                ("incorrect", "correct"),
                ("ruled out", "plausible"),
                ("too far", "matches the estimate"),
                ("false", "true"),
            ]
        )
        form = rng.choice(
            ["{}? {}", "{}: {}", "{} = {}", "{} - {}", "({}) {}", "- {}: {}", "Option {}: {}", "| {} | {} |"]
        )
        joint = "\n" if form[0] in "-|O" or no[-1] not in "." else rng.choice([" ", "\n"])
        reply = joint.join(form.format(letter, yes if letter == right else no) for letter in "ABCD")
        assert read(CHOICE, reply) == right, reply
        rejected = [letter for letter in "ABCD" if letter != right]
        rng.shuffle(rejected)
        left = rng.choice(
            ["All options but {0} can be ruled out.", "Everything except {0} is wrong.", "{1}, {2} and {3} are wrong."]
        )
        assert read(CHOICE, left.format(right, *rejected)) == right
        word = ("first", "second", "third", "fourth")["ABCD".index(right)]
        nth = rng.choice(["The {} option.", "The {} option is correct.", "It's the {} one.", "{} choice"])
        assert read(CHOICE, nth.format(word)) == right


VERDICTS: list[tuple[str, str]] = [
    ("The claim is true.", "The claim is false."),
    ("The statement is correct.", "The statement is not correct."),
    ("I agree with this statement.", "I disagree with this statement."),
    ("So the statement holds.", "So the statement does not hold."),
    ("Verdict: True", "Verdict: False"),
    ("True ✅", "False ❌"),
    ("這個說法是正確的。", "這個說法是錯誤的。"),
    ("這個說法屬實。", "這個說法不屬實。"),
]


def test_courtesy_before_a_verdict_says_nothing() -> None:
    rng = random.Random(5)
    for _ in range(DRAWS):
        truth = rng.choice([True, False])
        polite = rng.choice(
            ["Certainly! ", "Absolutely! Let me check. ", "Sure. ", "Of course! ", "Great question! ", ""]
        )
        verdict = rng.choice(VERDICTS)[0 if truth else 1]
        assert read(CLAIM, polite + verdict) == ("Yes" if truth else "No"), polite + verdict


@pytest.mark.parametrize(
    "write", [str, lambda truth: str(truth).lower(), lambda truth: f'"{"Yes" if truth else "No"}"']
)
def test_a_truth_value_is_read_under_any_key_of_a_verdict(write: Callable[[bool], str]) -> None:
    for key in (
        "answer",
        "correct",
        "is_correct",
        "result",
        "is_true",
        "verdict",
        "label",
        "holds",
        "supported",
        "claim_is_true",
    ):
        for truth in (True, False):
            reply = f'{{"reasoning": "The depth is about 3 m.", "{key}": {write(truth)}}}'
            assert read(CLAIM, reply) == ("Yes" if truth else "No"), reply
