/* attnscope(1), in man(7)'s macros. */
#include "cli/tables.h"
#include "tui/keys/actions.h"

#include <string.h>

static const struct {
    const char *name, *meaning;
} variables[] = {
#define VARIABLE(name, meaning) {name, meaning},
#include "cli/environment.def"
#undef VARIABLE
};

/* Text as it stands: no request at the start of a line, no hyphen of its own, no escape. */
static void put(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", out);
    for (; *text; text++)
        fputs(*text == '\\' ? "\\e" : *text == '-' ? "\\-" : (char[]){*text, '\0'}, out);
}

/* An entry: what stands in bold, its argument, and what it means. */
static void entry(FILE *out, const char *bold, const char *argument, const char *meaning)
{
    fputs(".TP\n\\fB", out);
    put(out, bold);
    fputs("\\fR", out);
    if (argument && *argument) {
        fputs(" \\fI", out);
        put(out, argument);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    put(out, meaning);
    fputc('\n', out);
}

static void write_options(FILE *out)
{
    fputs(".SH OPTIONS\n", out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const struct option_row *o = &option_rows[i];
        char words[64], letter[8] = "";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(words, sizeof words, "%s--%s", letter, o->name);
        entry(out, words, o->argument, o->meaning);
        const char *before = " (";
        for (int c = 0; c < COMMAND_COUNT && o->commands != ~0u; c++)
            if (o->commands & 1u << c) {
                fprintf(out, "%s%s", before, command_rows[c].name);
                before = ", ";
            }
        fputs(o->commands != ~0u ? ")\n" : "", out);
    }
}

int write_man(FILE *out)
{
    fprintf(out, ".TH ATTNSCOPE 1 \"\" \"attnscope %s\" \"User Commands\"\n", options_version);
    fputs(".SH NAME\nattnscope \\- a debugger for fused attention kernels\n.SH SYNOPSIS\n.B "
          "attnscope\n[\\fICOMMAND\\fR] [\\fIOPTION\\fR...] \\fIFILE\\fR...\n.SH DESCRIPTION\nRuns a debug build of a "
          "CUDA attention kernel, with or without a GPU, checks every stage against a float64 reference, tile by tile, "
          "and reports which stage is wrong, where it begins, and which mistake explains it.\n.SH COMMANDS\n",
          out);
    for (int c = 0; c < COMMAND_COUNT; c++)
        entry(out, command_rows[c].name, command_rows[c].arguments, command_rows[c].meaning);
    write_options(out);
    fputs(".SH PROBES\nA kernel includes attnscope.h, which is installed beside this program; without attnscope its "
          "probes are nothing. What each takes in full says attnscope docs probes; attnscope docs writing\\-a\\-kernel "
          "shows where they go, and attnscope docs my_attention.cu is a kernel that has them.\n",
          out);
    entry(out, "ASC_AT(batch, head, q_tile);", NULL, "which q tile this block works on; before the others");
    entry(out, "ASC_RECORD(channel, kv_tile, i, n, row, col, value);", NULL,
          "n values of each thread, i from 0 to n - 1; channel is one of q k v s p u o, row and col count in the tile");
    entry(out, "ASC_RECORD_ROW(channel, kv_tile, row, records, value);", NULL,
          "a value of a row: m, alpha, l, lse; records says which lane holds it");
    entry(out, "ASC_RECORD_SHARED(channel, kv_tile, row, rows, col, cols, value);", NULL,
          "a tile that lies in shared memory");
    entry(out, "ASC_VALUE(name, row, col, value);", NULL, "any other value, by a name of ASC_VALUES");
    entry(out, "ASC_KERNEL(name) { kernel.plan = ...; kernel.launch = ...; }", NULL,
          "the registration: how the kernel is launched, and what its values mean");
    fputs(".SH KEYS\n", out);
    for (int a = 0; a < ACTION_COUNT; a++)
        entry(out, action_text(a)->keys, NULL, action_text(a)->help);
    fputs(".SH MOUSE\nClick a tile, head, stage, element or line to go there; click again to open it. The wheel steps "
          "or scrolls. Drag the divider of the overview to resize the panes. With Shift, most terminals select text as "
          "usual.\n.SH EXIT STATUS\n0 as expected, 1 not as expected, 2 usage or input error, 3 could not run.\n.SH "
          "ENVIRONMENT\n",
          out);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        entry(out, variables[i].name, NULL, variables[i].meaning);
    fputs(".SH FILES\n", out);
    entry(out, "~/.config/attnscope/config.ini", NULL, "keys, colors, the first view: attnscope docs config");
    entry(out, "~/.local/state/attnscope/recent", NULL, "the files opened last, and their cursor positions");
    entry(out, "share/attnscope/docs", NULL,
          "below the folder that attnscope was installed in: writing-a-kernel.md, probes.md and the other pages; "
          "examples/ has "
          "kernels to begin with");
    return ferror(out) ? -1 : 0;
}
