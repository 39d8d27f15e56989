#include "engine/scenario/keys.h"

#include <string.h>

static const struct {
    const char *section, *about;
} sections[] = {
    {"scenario", "What is run."},
    {"shape", "The problem: O = softmax(scale Q Kᵀ, masked) V."},
    {"quant",
     "How values become codes. The scale is the largest magnitude among the elements that share it, over 127 (u8), 448 "
     "(e4m3) or 57344 (e5m2), and 1 where all of them are 0; the code is the value over the scale, rounded to nearest "
     "even, u8 with 128 added. Both divisions are of f32."},
    {"fill", "The inputs. The same fill and seed give the same bits on every machine."},
    {"capture", "Which tiles are recorded. What is not recorded is shown as not recorded."},
    {"expect", "What must be found; `attnscope check` compares it with what is found."},
    {"budget", "Limits of what the kernel may use without probes. They are judged on a GPU, in a second build without "
               "probes; over budget is not as expected. On the CPU they are not judged, and the report says so."},
};

static const struct {
    const char *name, *meaning;
} fills[] = {
#define FILL(id, name, meaning) {name, meaning},
#include "engine/scenario/fills.def"
#undef FILL
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
    const char *section = "";
    for (int i = 0; i < KEY_COUNT; i++) {
        const struct scenario_key *key = &scenario_keys[i];
        if (strcmp(section, key->section) != 0) {
            const char *about = "";
            section = key->section;
            for (size_t j = 0; j < sizeof sections / sizeof sections[0]; j++) {
                if (strcmp(section, sections[j].section) == 0)
                    about = sections[j].about;
            }
            fprintf(out, "\n## [%s]\n\n%s\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n", section,
                    about);
        }
        fprintf(out, "| `%s` | %s | %s | %s |\n", key->name, key->expected, key->by_default, key->meaning);
    }
    fputs("\n## Fills\n\nValues are computed in float64 and rounded once, to nearest even, into the dtype, or into f16 "
          "where codes are made from them.\n\n"
          "| name | meaning |\n| --- | --- |\n",
          out);
    for (size_t i = 0; i < sizeof fills / sizeof fills[0]; i++)
        fprintf(out, "| `%s` | %s |\n", fills[i].name, fills[i].meaning);
    return fflush(out) == 0 && !ferror(out) ? 0 : -1;
}
