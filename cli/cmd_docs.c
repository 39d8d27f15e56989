/* Reference pages out of the tables they describe; docs/generate writes them below docs/. */
#include "cli/tables.h"
#include "engine/scenario/scenario.h"
#include "engine/trace/conventions.h"
#include "tui/commands.h"
#include "tui/config.h"
#include "tui/editor.h"
#include "tui/keys/actions.h"

#include <float.h>
#include <limits.h>
#include <string.h>

static int write_channels(FILE *out)
{
    fputs("# Channels\n\nWhat a probe can record, in stage order, and the formula that its local verdict uses.\n\n| "
          "channel | on screen | per | meaning | local formula |\n| --- | --- | --- | --- | --- |\n",
          out);
    for (int ch = 0; ch < ASC_CHANNELS; ch++)
        fprintf(out, "| `%s` | %s | %s | %s | %s |\n", channel_name(ch), channel_label(ch),
                channel_per_kv(ch) ? "q tile and kv tile" : "q tile", channel_meaning(ch), channel_formula(ch));
    fputs("\nGroups, for `attnscope run --isolate`:\n\n| group | channels | meaning |\n| --- | --- | --- |\n", out);
    const struct isolation_group *group;
    for (int i = 0; (group = isolation_group(i)); i++) {
        fprintf(out, "| `%s` |", group->name);
        for (int ch = 0; ch < ASC_CHANNELS; ch++)
            if (group->stages & 1u << ch)
                fprintf(out, " `%s`", channel_name(ch));
        fprintf(out, " | %s |\n", group->meaning);
    }
    return ferror(out) ? -1 : 0;
}

static void write_choices(FILE *out, int convention)
{
    char choice[32], name[32];
    for (int value = 0; value <= (int)conventions[convention].high; value++) {
        convention_choice(convention, value, choice, sizeof choice);
        convention_c_name(convention, value, name, sizeof name);
        fprintf(out, "%s%s `%s`", value ? ", " : "", choice, name);
    }
}

static int write_conventions(FILE *out)
{
    fputs("# Conventions\n\nWhat a kernel's values mean, declared in its registration as `kernel.conventions.NAME`, or "
          "`kernel.NAME` for short. A field that is not set is 0; no field depends on another. A saved trace names the "
          "choices as the third column does, 0 first; each has its name in C beside it.\n\n| field | 0, the default | "
          "choices or range | otherwise |\n| "
          "--- | --- | --- | --- |\n",
          out);
    for (int i = 0; i < CONVENTIONS; i++) {
        const struct convention *c = &conventions[i];
        fprintf(out, "| `%s` | %s | ", c->name, c->by_default);
        if (c->kind == CONVENTION_CHOICE)
            write_choices(out, i);
        else if (c->high >= (double)FLT_MAX)
            fputs("any finite number", out);
        else
            fprintf(out, "%g to %g", c->low, c->high);
        fprintf(out, " | %s |\n", c->otherwise);
    }
    return scenario_write_features(out);
}

static void write_cause_table(FILE *out, int declarations)
{
    fputs("| name | stage | formula | meaning |\n| --- | --- | --- | --- |\n", out);
    for (int c = CAUSE_NONE + 1; c < CAUSE_COUNT; c++)
        if (cause_is_declaration(c) == declarations)
            fprintf(out, "| `%s` | %s | %s | %s |\n", cause_name(c), channel_label(cause_channel(c)), cause_formula(c),
                    cause_sentence(c));
}

static int write_causes(FILE *out)
{
    fputs(
        "# Causes\n\nMistakes that attnscope knows by name. Most are names of [rules](rules.md), which the search "
        "finds and "
        "weighs: a rule has its name where it explains at least half of what is wrong, and not some rows or columns of "
        "a "
        "tile alone. The others have a formula of their own, and are named only if it explains at least 99.99 % of the "
        "elements in the bad tiles and at least 99.99 % of those that distinguish it from the correct formula; if at "
        "least 16 elements in 16 rows with 16 different values distinguish it; and if chance is ruled out. Where a "
        "formula has a choice (a type, a number of products), half of the elements choose and the other half "
        "confirm.\n\n",
        out);
    write_cause_table(out, 0);
    fputs("\n## Declared otherwise\n\nThe values are right, but under a different convention than the kernel's "
          "registration declares. These must hold in all tiles, not only in the bad ones. Where the output is right, "
          "one of these is named and never a mistake; where it is wrong, one of these is named only if no mistake "
          "explains the stage.\n\n",
          out);
    write_cause_table(out, 1);
    return ferror(out) ? -1 : 0;
}

static int write_refused(FILE *out)
{
    static const char *const opcodes[] = {
#define PTX(opcode, operands, function) opcode,
#include "engine/build/ptx.def"
    };
    fputs(
        "# What the CPU executor refuses\n\nThe executor runs a kernel as a GPU would, or not at all. All of this runs "
        "on a GPU (`--backend gpu`).\n\n## Refused where it stands\n\nThe build ends at its line, with its reason. "
        "`<NAME>` is a header; a `*` stands for any ending.\n\n| in the source | what it is | why |\n| --- | --- | --- "
        "|\n",
        out);
#define GPU_ONLY(pattern, what, why) fputs("| `" pattern "` | " what " | " why " |\n", out);
#include "engine/build/gpu_only.def"
#undef GPU_ONLY
    fputs("\n## Refused where it is reached\n\nOther inline PTX than the list below ends the run that comes to it, at "
          "its "
          "line. A kernel may hold it all the same, as CuTe's headers do.\n\n| in the source | why |\n| --- | --- |\n"
          "| `mma.sync`, `wgmma` of other shapes or types | the bits of these products are not measured |\n"
          "| `tcgen05` | Blackwell's tensor memory is not modelled |\n"
          "| other approximate functions | the bits of their results are not measured |\n"
          "| anything else | nothing translates it; it may be misspelt |\n\nWhat runs:\n",
          out);
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
        const size_t family = strcspn(opcodes[i], ".") + 1;
        const bool same = i && strncmp(opcodes[i], opcodes[i - 1], family) == 0;
        if (!i || strcmp(opcodes[i], opcodes[i - 1]) != 0)
            fprintf(out, "%s`%s`", same ? " " : "\n- ", opcodes[i]);
    }
    fputs("\n", out);
    return ferror(out) ? -1 : 0;
}

static int write_commands(FILE *out)
{
    fputs("# Command line\n\n```\n", out);
    options_write_help(out);
    fputs("```\n", out);
    return ferror(out) ? -1 : 0;
}

static const struct {
    const char *name;
    int (*write)(FILE *out);
} pages[] = {
#define PAGE(name, write) {name, write},
#include "cli/pages.def"
#undef PAGE
};

/* A page that a person wrote, or an example: what lies below docs. 1: there is none of this name. */
static int print_written(const char *name, struct err *err)
{
    static const char *const forms[] = {"%s/docs/%s.md", "%s/docs/examples/%s"};
    struct runner_paths paths;
    char path[PATH_MAX], bytes[4096];
    FILE *in = NULL;
    size_t n;
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.")] != '\0' || name[0] == '.')
        return 1;
    if (runner_find_paths(&paths, err) != 0)
        return -1;
    for (size_t i = 0; i < sizeof forms / sizeof *forms && !in; i++)
        if ((size_t)snprintf(path, sizeof path, forms[i], paths.root, name) < sizeof path)
            in = fopen(path, "re");
    if (!in)
        return 1;
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        fwrite(bytes, 1, n, text_out());
    const bool broke = ferror(in) != 0;
    fclose(in);
    return broke                ? err_errno(err, path, "the page cannot be read")
           : ferror(text_out()) ? err_errno(err, "docs", "standard output cannot be written")
                                : 0;
}

int command_docs(const struct options *o, struct err *err)
{
    char names[256] = "";
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (strcmp(o->files[0], pages[i].name) == 0)
            return pages[i].write(text_out()) == 0 ? 0 : err_errno(err, "docs", "standard output cannot be written");
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", pages[i].name);
    }
    const int written = print_written(o->files[0], err);
    if (written <= 0)
        return written;
    return err_set(err, ERR_USAGE, "docs",
                   "expected one of %s, or a page or an example of docs, such as writing-a-kernel, probes and "
                   "my_attention.cu, found '%s'",
                   names, o->files[0]);
}
