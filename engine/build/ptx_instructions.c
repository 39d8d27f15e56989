#include "engine/build/ptx_parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int ptx_refuse(struct ptx_statement *s, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->out->refused, sizeof s->out->refused, format, args);
    va_end(args);
    s->out->refused_line = line;
    return -1;
}

enum { OPCODE_MAX = 128, INSTRUCTION_OPERANDS_MAX = 9, VECTOR_MAX = 128, REGISTERS_MAX = 64 };

struct row {
    const char *opcode, *operands, *function;
};
static const struct row rows[] = {
#define PTX(opcode, operands, function) {opcode, operands, function},
#include "engine/build/ptx.def"
};

struct pair {
    const char *name, *value;
};
static const struct pair spellings[] = {
#define PTX_HINT(modifier) {modifier, ""},
#define PTX_SPELLING(modifier, as) {modifier, as},
#include "engine/build/ptx.def"
};
static const struct pair special_registers[] = {
#define PTX_REGISTER(name, value) {name, value},
#include "engine/build/ptx.def"
};

/* A piece of the template. */
struct token {
    const char *text; /* borrowed */
    size_t n;
};

struct argument {
    enum { VALUE, VECTOR, ADDRESS, TENSOR } kind;
    struct token part[VECTOR_MAX]; /* an address: register, offset; a tensor: its map, coordinates */
    int n;
};

struct instruction {
    struct token guard; /* n 0: none */
    int guard_inverted;
    struct token opcode;
    char looked_up[OPCODE_MAX]; /* opcode without hints */
    struct argument argument[INSTRUCTION_OPERANDS_MAX];
    int n_arguments;
};

struct reader {
    struct ptx_statement *s;
    const char *at;
    struct token declared[REGISTERS_MAX]; /* by .reg */
    int n_declared;
};

static int line_of(const struct reader *r, const char *at)
{
    const size_t i = (size_t)(at - r->s->text);
    return r->s->text_lines[i < r->s->n_text ? i : r->s->n_text - 1];
}

static int refuse(const struct reader *r, const char *at, const char *what, const char *word, size_t n)
{
    return ptx_refuse(r->s, line_of(r, at), "inline PTX %s%.*s", what, n < 60 ? (int)n : 60, word);
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool is(struct token t, const char *word)
{
    return strlen(word) == t.n && strncmp(t.text, word, t.n) == 0;
}

static void skip_space(struct reader *r)
{
    for (;;) {
        while (isspace((unsigned char)*r->at))
            r->at++;
        const char *end = r->at[0] == '/' && r->at[1] == '*' ? strstr(r->at, "*/") : NULL;
        if (end)
            r->at = end + 2;
        else if (r->at[0] == '/' && r->at[1] == '/')
            r->at += strcspn(r->at, "\n");
        else
            return;
    }
}

static int take(struct reader *r, char c)
{
    skip_space(r);
    if (*r->at != c)
        return 0;
    r->at++;
    return 1;
}

/* A register, %0, %[name], %%special, or a number. n 0: none of them. */
static struct token take_register(struct reader *r)
{
    skip_space(r);
    struct token t = {r->at, 0};
    const char *c = r->at;
    if (c[0] == '%' && c[1] == '[') {
        c += strcspn(c, "]");
        c += *c == ']';
    } else {
        const bool special = c[0] == '%' && c[1] == '%';
        c += special ? 2 : *c == '%' || *c == '-';
        while (is_name(*c) || (special && *c == '.'))
            c++;
    }
    t.n = (size_t)(c - r->at);
    r->at = c;
    return t;
}

static int take_vector(struct reader *r, struct argument *a)
{
    do {
        if (a->n == VECTOR_MAX)
            return -1;
        a->part[a->n] = take_register(r);
        if (!a->part[a->n++].n)
            return -1;
    } while (take(r, ','));
    return take(r, '}') ? 0 : -1;
}

static int take_address(struct reader *r, struct argument *a)
{
    a->kind = ADDRESS;
    a->part[a->n++] = take_register(r);
    if (!a->part[0].n)
        return -1;
    if (take(r, '+')) {
        a->part[a->n++] = take_register(r);
        if (!a->part[1].n)
            return -1;
    }
    if (take(r, ',')) { /* [map, {x, y}] */
        a->kind = TENSOR;
        if (a->n != 1 || !take(r, '{') || take_vector(r, a))
            return -1;
    }
    return take(r, ']') ? 0 : -1;
}

static int take_argument(struct reader *r, struct argument *a)
{
    a->kind = VALUE;
    a->n = 0;
    if (take(r, '{')) {
        a->kind = VECTOR;
        return take_vector(r, a);
    }
    if (take(r, '['))
        return take_address(r, a);
    a->part[0] = take_register(r);
    a->n = 1;
    if (a->part[0].n && take(r, '|')) /* register|predicate */
        a->part[a->n++] = take_register(r);
    return a->part[a->n - 1].n ? 0 : -1;
}

/* The opcode as ptx.def has it. -1: too long for any. */
static int look_up_as(struct instruction *in)
{
    const char *c = in->opcode.text, *stop = c + in->opcode.n;
    size_t n_out = 0;
    while (c < stop) {
        struct token modifier = {c, 0};
        while (c < stop && *c != '.')
            c++;
        modifier.n = (size_t)(c - modifier.text);
        c += c < stop;
        const char *text = modifier.text;
        size_t n = modifier.n;
        for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
            if (is(modifier, spellings[i].name)) {
                text = spellings[i].value;
                n = strlen(text);
            }
        if (!n)
            continue;
        if (n_out + n + 2 > sizeof in->looked_up)
            return -1;
        if (n_out)
            in->looked_up[n_out++] = '.';
        memcpy(in->looked_up + n_out, text, n);
        n_out += n;
    }
    in->looked_up[n_out] = '\0';
    return 0;
}

static int refuse_opcode(const struct reader *r, const struct instruction *in)
{
    r->s->out->unknown = 1;
    return refuse(r, in->opcode.text, "", in->opcode.text, in->opcode.n);
}

static int take_instruction(struct reader *r, struct instruction *in)
{
    in->guard.n = 0;
    in->n_arguments = in->guard_inverted = 0;
    if (take(r, '@')) {
        in->guard_inverted = take(r, '!');
        in->guard = take_register(r);
        skip_space(r);
    }
    in->opcode.text = r->at;
    while (is_name(*r->at) || *r->at == '.' || (r->at[0] == ':' && r->at[1] == ':') ||
           (r->at[0] == ':' && r->at[-1] == ':'))
        r->at++;
    in->opcode.n = (size_t)(r->at - in->opcode.text);
    if (!in->opcode.n)
        return refuse(r, r->at, "at ", r->at, strcspn(r->at, "\n"));
    if (look_up_as(in))
        return refuse_opcode(r, in);
    if (take(r, ';'))
        return 0;
    do {
        if (in->n_arguments == INSTRUCTION_OPERANDS_MAX || take_argument(r, &in->argument[in->n_arguments++]))
            return refuse(r, in->opcode.text, "with operands like those of ", in->opcode.text, in->opcode.n);
    } while (take(r, ','));
    return take(r, ';') ? 0 : refuse(r, in->opcode.text, "with operands like those of ", in->opcode.text, in->opcode.n);
}

/* The number of the operand of %0 or %[name], or -1. */
static int operand_of(const struct reader *r, struct token t)
{
    if (t.n > 1 && isdigit((unsigned char)t.text[1])) {
        const long i = strtol(t.text + 1, NULL, 10);
        return i < r->s->n_operands ? (int)i : -1;
    }
    for (int i = 0; t.n > 3 && i < r->s->n_operands; i++) {
        const struct ptx_operand *o = &r->s->operand[i];
        if (o->name && o->n_name == t.n - 3 && memcmp(o->name, t.text + 2, o->n_name) == 0)
            return i;
    }
    return -1;
}

static bool is_declared(const struct reader *r, struct token t)
{
    for (int i = 0; i < r->n_declared; i++)
        if (r->declared[i].n == t.n && memcmp(r->declared[i].text, t.text, t.n) == 0)
            return true;
    return false;
}

/* A register or a number as C++. */
static int write_value(struct reader *r, struct token t, int written)
{
    FILE *code = r->s->code;
    if (t.n > 2 && t.text[0] == '%' && t.text[1] == '%') {
        for (size_t i = 0; !written && i < sizeof special_registers / sizeof *special_registers; i++)
            if (is((struct token){t.text + 2, t.n - 2}, special_registers[i].name)) {
                fputs(special_registers[i].value, code);
                return 0;
            }
        const struct token own = {t.text + 2, t.n - 2};
        if (!is_declared(r, own))
            return refuse(r, t.text, "register ", t.text + 1, t.n - 1);
        t = own;
    }
    if (written && is(t, "_")) {
        fputs("simt_ptx::ignored()", code);
    } else if (t.text[0] == '%') {
        const int i = operand_of(r, t);
        if (i < 0 || (written && !r->s->operand[i].written))
            return refuse(r, t.text, i < 0 ? "without an operand " : "that writes its input ", t.text, t.n);
        fprintf(code, "simt_op%d", i);
    } else if (is_declared(r, t)) {
        fprintf(code, "simt_reg_%.*s", (int)t.n, t.text);
    } else if (!written && t.n == 10 && t.text[0] == '0' && (t.text[1] | 32) == 'f') { /* bits of a float */
        fprintf(code, "0x%.*sU", (int)t.n - 2, t.text + 2);
    } else if (!written && (isdigit((unsigned char)t.text[0]) || t.text[0] == '-')) {
        fprintf(code, "%.*s", (int)t.n, t.text);
    } else {
        return refuse(r, t.text, "register ", t.text, t.n);
    }
    return 0;
}

static const char *type_of(char letter)
{
    return letter == 'w' ? "uint32_t" : letter == 'h' ? "uint16_t" : letter == 'q' ? "uint64_t" : "bool";
}

static int write_bits(struct reader *r, struct token t, char letter)
{
    fprintf(r->s->code, "simt_ptx::bits<%s>(", type_of(letter));
    if (write_value(r, t, 0))
        return -1;
    fputc(')', r->s->code);
    return 0;
}

/* From part `first` on. letter '&': by name, to be written. */
static int write_list(struct reader *r, const struct argument *a, int first, char letter)
{
    for (int i = first; i < a->n; i++) {
        if (i > first)
            fputs(", ", r->s->code);
        if (letter == '&' ? write_value(r, a->part[i], 1) : write_bits(r, a->part[i], letter))
            return -1;
    }
    return 0;
}

static int write_input(struct reader *r, const struct argument *a, char letter, int count)
{
    FILE *code = r->s->code;
    if (letter == '@') {
        fputs("simt_ptx::address(", code);
        if (write_value(r, a->part[0], 0))
            return -1;
        fputs(", simt_ptx::offset(", code);
        if (a->n == 1)
            fputc('0', code);
        else if (write_value(r, a->part[1], 0))
            return -1;
        fputs("))", code);
    } else if (letter == 't') {
        if (write_bits(r, a->part[0], 'q'))
            return -1;
        fprintf(code, ", simt_ptx::regs<uint32_t, %d>{{", count);
        if (write_list(r, a, 1, 'w'))
            return -1;
        fputs("}}", code);
    } else if (count == 1) {
        return write_bits(r, a->part[0], letter);
    } else {
        fprintf(code, "simt_ptx::regs<%s, %d>{{", type_of(letter), count);
        if (write_list(r, a, 0, letter))
            return -1;
        fputs("}}", code);
    }
    return 0;
}

static int write_references(struct reader *r, const struct argument *a)
{
    fputs("simt_ptx::references(", r->s->code);
    if (write_list(r, a, 0, '&'))
        return -1;
    fputc(')', r->s->code);
    return 0;
}

/* One token of a row's operands. */
struct wanted {
    int written, optional, referred, count;
    char letter;
};

/* The next token of *text; 0: none is left. */
static bool next_wanted(const char **text, struct wanted *w)
{
    const char *c = *text + strspn(*text, " ");
    if (!*c)
        return false;
    *w = (struct wanted){.count = 1};
    for (; *c == '=' || *c == '?' || *c == '&'; c++) {
        w->written |= *c == '=';
        w->optional |= *c == '?';
        w->referred |= *c == '&';
    }
    w->letter = *c++;
    if (isdigit((unsigned char)*c)) {
        char *end;
        w->count = (int)strtol(c, &end, 10);
        c = end;
    }
    *text = c;
    return true;
}

static bool fits(const struct row *row, const struct instruction *in)
{
    const char *text = row->operands;
    struct wanted w;
    int i = 0;
    for (; next_wanted(&text, &w); i++) {
        if (i == in->n_arguments && w.optional)
            return true;
        if (i >= in->n_arguments)
            return false;
        const struct argument *a = &in->argument[i];
        if ((w.letter == '0' || w.letter == '_') && !is(a->part[0], (char[]){w.letter, '\0'}))
            return false;
        if ((w.letter == '@') != (a->kind == ADDRESS) || (w.letter == 't') != (a->kind == TENSOR))
            return false;
        if (w.letter != '@' && a->n != w.count + (w.letter == 't'))
            return false;
    }
    return i == in->n_arguments;
}

/* put(function(inputs), outputs) */
static int write_call(struct reader *r, const struct row *row, const struct instruction *in)
{
    FILE *code = r->s->code;
    const char *text = row->operands;
    struct wanted w;
    const bool gives = row->operands[0] == '=';
    const char *comma = "";
    fprintf(code, "%ssimt_ptx::%s(", gives ? "simt_ptx::put(" : "", row->function);
    for (int i = 0; next_wanted(&text, &w) && i < in->n_arguments; i++) {
        if (w.written || w.letter == '0' || w.letter == '_')
            continue;
        fputs(comma, code);
        comma = ", ";
        if (w.referred ? write_references(r, &in->argument[i]) : write_input(r, &in->argument[i], w.letter, w.count))
            return -1;
    }
    fputc(')', code);
    for (int i = 0; gives && i < in->argument[0].n; i++) {
        fputs(", ", code);
        if (write_value(r, in->argument[0].part[i], 1))
            return -1;
    }
    fputs(gives ? "); " : "; ", code);
    return 0;
}

/* NAME: of a place that branches go to; n 0: there is none here. */
static struct token take_label(struct reader *r)
{
    struct token t = {r->at, 0};
    const char *c = r->at;
    while (is_name(*c))
        c++;
    const size_t n = (size_t)(c - r->at);
    c += strspn(c, " \t");
    if (n && c[0] == ':' && c[1] != ':') {
        t.n = n;
        r->at = c + 1;
    }
    return t;
}

/* The next label from r->at on; n 0: there are no more. */
static struct token next_label(struct reader *r)
{
    for (skip_space(r); *r->at; skip_space(r)) {
        const struct token label = take_label(r);
        if (label.n)
            return label;
        r->at += strchr("{};", *r->at) ? 1 : strcspn(r->at, ";");
    }
    return (struct token){0};
}

void ptx_write_labels(struct ptx_statement *s)
{
    struct reader r = {.s = s, .at = s->text};
    for (struct token label = next_label(&r); label.n; label = next_label(&r))
        fprintf(s->code, "__label__ simt_label_%.*s; ", (int)label.n, label.text);
}

static int write_branch(struct reader *r, const struct instruction *in)
{
    const struct argument *to = &in->argument[0];
    struct reader all = {.s = r->s, .at = r->s->text};
    struct token label = next_label(&all);
    while (label.n &&
           !(in->n_arguments == 1 && to->part[0].n == label.n && memcmp(to->part[0].text, label.text, label.n) == 0))
        label = next_label(&all);
    if (!label.n)
        return refuse(r, in->opcode.text, "without a label for ", in->opcode.text, in->opcode.n);
    fprintf(r->s->code, "goto simt_label_%.*s; ", (int)to->part[0].n, to->part[0].text);
    return 0;
}

static int write_instruction(struct reader *r, const struct instruction *in)
{
    const bool branch = strcmp(in->looked_up, "bra") == 0 || strcmp(in->looked_up, "bra.uni") == 0;
    const struct row *row = NULL;
    int known = branch;
    for (size_t i = 0; !row && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].opcode, in->looked_up) == 0) {
            known = 1;
            row = fits(&rows[i], in) ? &rows[i] : NULL;
        }
    if (!row && !known)
        return refuse_opcode(r, in);
    if (!row && !branch)
        return refuse(r, in->opcode.text, "with operands like those of ", in->opcode.text, in->opcode.n);
    if (in->guard.n) {
        fprintf(r->s->code, "if (%s", in->guard_inverted ? "!" : "");
        if (write_value(r, in->guard, 0))
            return -1;
        fputs(") ", r->s->code);
    }
    return branch ? write_branch(r, in) : write_call(r, row, in);
}

/* .reg .b32 a, b; */
static int take_registers(struct reader *r)
{
    const char *begin = r->at;
    r->at += strlen(".reg");
    if (!take(r, '.'))
        return refuse(r, begin, "", begin, strcspn(begin, ";\n"));
    const struct token type = take_register(r);
    const char *name = is(type, "pred") ? "bool" : NULL;
    if (is(type, "b16") || is(type, "u16") || is(type, "s16") || is(type, "f16"))
        name = "uint16_t";
    if (is(type, "b32") || is(type, "u32") || is(type, "s32") || is(type, "f32") || is(type, "f16x2"))
        name = "uint32_t";
    if (is(type, "b64") || is(type, "u64") || is(type, "s64"))
        name = "uint64_t";
    do {
        struct token t = take_register(r);
        if (t.n > 2 && t.text[0] == '%' && t.text[1] == '%') { /* %rx, as an asm statement has to write it */
            t.text += 2;
            t.n -= 2;
        }
        if (!name || !t.n || *t.text == '%' || *t.text == '-' || strchr(".<", *r->at) || r->n_declared == REGISTERS_MAX)
            return refuse(r, begin, "", begin, strcspn(begin, ";\n"));
        r->declared[r->n_declared++] = t;
        /* Without an initializer, past which no branch may jump. */
        fprintf(r->s->code, "[[maybe_unused]] %s simt_reg_%.*s; simt_reg_%.*s = 0; ", name, (int)t.n, t.text, (int)t.n,
                t.text);
    } while (take(r, ','));
    return take(r, ';') ? 0 : refuse(r, begin, "", begin, strcspn(begin, ";\n"));
}

int ptx_write_instructions(struct ptx_statement *s)
{
    struct reader r = {.s = s, .at = s->text};
    struct instruction *in = calloc(1, sizeof *in);
    int failed = in ? 0 : -1;
    for (skip_space(&r); !failed && *r.at; skip_space(&r)) {
        const struct token label = take_label(&r);
        if (label.n)
            fprintf(s->code, "simt_label_%.*s:; ", (int)label.n, label.text);
        else if (*r.at == '{' || *r.at == '}')
            fprintf(s->code, "%c ", *r.at++);
        else if (*r.at == ';')
            r.at++;
        else if (strncmp(r.at, ".reg", 4) == 0 && !is_name(r.at[4]))
            failed = take_registers(&r);
        else
            failed = take_instruction(&r, in) || write_instruction(&r, in) ? -1 : 0;
    }
    free(in);
    return failed;
}
