#include "engine/scenario/keys.h"

static const char *const about[SECTION_COUNT] = {
#define SECTION(id, name, about) about,
#include "engine/scenario/sections.def"
#undef SECTION
};

static const struct {
    const char *name, *meaning;
} fills[] = {
#define FILL(id, name, meaning) {name, meaning},
#include "engine/scenario/fills.def"
#undef FILL
};

static const struct {
    const char *keys, *problem, *who, *apart, *declared, *wrong;
} features[] = {
#define FEATURE(keys, problem, who, apart, declared, wrong) {keys, problem, who, apart, declared, wrong},
#include "engine/scenario/features.def"
#undef FEATURE
};

static const char intro[] =
    "# Scenarios\n\nA scenario describes what is run and what must be found. It is an INI file:\n\n    ; scores "
    "multiplied by the scale twice\n    [scenario]\n    kernel = kernels/v2b_scalar.cu\n    patch = "
    "double-scale.patch\n\n    [shape]\n    heads = 8\n    q_len = 512\n\n    [expect]\n    verdict = fail\n    first "
    "= s b0 h0 q0 k0\n    culprits = s\n\nEach key may appear once, in any order; an unknown key, section or value is "
    "an error that names its line. A line that\nbegins with `;` or `#` is a comment, and so is the rest of a line "
    "after a blank and `;`. Lines have at most 197\nbytes. On the command line a key is written with its section, as "
    "in `shape.causal`.\n";

int scenario_write_docs(FILE *out)
{
    fputs(intro, out);
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct scenario_key *key = &scenario_keys[i];
        if (i == 0 || key->section != key[-1].section)
            fprintf(out, "\n## [%s]\n\n%s\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
                    section_names[key->section], about[key->section]);
        fprintf(out, "| `%s` | %s | %s | %s |\n", key->name, key->expected, key->by_default, key->meaning);
    }
    fputs("\n## Fills\n\nValues are computed in float64 and rounded once, to nearest even, into the dtype, or into f16 "
          "where codes are made from them.\n\n"
          "| name | meaning |\n| --- | --- |\n",
          out);
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++)
        fprintf(out, "| `%s` | %s |\n", fills[i].name, fills[i].meaning);
    fputs("\n## What a problem may have\n\nAll of it combines but for what the last column names, which is refused in "
          "one "
          "line. How a kernel declares that it takes it, and what goes wrong with it: "
          "[conventions.md](conventions.md#what-a-problem-may-have).\n\n"
          "| the problem | keys | who has it | not with |\n| --- | --- | --- | --- |\n",
          out);
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        fprintf(out, "| %s | %s | %s | %s |\n", features[i].problem, features[i].keys, features[i].who,
                features[i].apart);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}

int scenario_write_features(FILE *out)
{
    fputs("\n## What a problem may have\n\nA registration with a plan says what of it the kernel takes, as sets of "
          "`ASC_SUPPORTS(NAME)`; the rest is declined for it. Host code of `kernel.run` is asked itself. Who has it, "
          "and how a "
          "scenario says it: [scenarios.md](scenarios.md#what-a-problem-may-have).\n\n"
          "| the problem | declared by | what goes wrong, and what is said then |\n| --- | --- | --- |\n",
          out);
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        fprintf(out, "| %s | %s | %s |\n", features[i].problem, features[i].declared, features[i].wrong);
    return ferror(out) ? -1 : 0;
}
