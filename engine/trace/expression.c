#include "engine/trace/expression.h"

#include "engine/base/text.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {"i", "j", "h", "b", "q_len", "kv_len", "s"};

static const struct {
    const char *name;
    enum expression_op op;
    int operands;
    bool real;
} functions[] = {{"abs", EXPRESSION_ABS, 1, false}, {"min", EXPRESSION_MIN, 2, false},
                 {"max", EXPRESSION_MAX, 2, false}, {"exp", EXPRESSION_EXP, 1, true},
                 {"log", EXPRESSION_LOG, 1, true},  {"tanh", EXPRESSION_TANH, 1, true},
                 {"sqrt", EXPRESSION_SQRT, 1, true}};

/* Operators of two operands; a higher level binds closer. `>` and `>=` are the others with their operands exchanged. */
static const struct {
    const char *text;
    int level;
    enum expression_op op;
    bool exchanged, negated;
} operators[] = {{"||", 0, EXPRESSION_OR, false, false},         {"&&", 1, EXPRESSION_AND, false, false},
                 {"==", 2, EXPRESSION_EQUAL, false, false},      {"!=", 2, EXPRESSION_EQUAL, false, true},
                 {"<=", 3, EXPRESSION_LESS_EQUAL, false, false}, {">=", 3, EXPRESSION_LESS_EQUAL, true, false},
                 {"<", 3, EXPRESSION_LESS, false, false},        {">", 3, EXPRESSION_LESS, true, false},
                 {"+", 4, EXPRESSION_ADD, false, false},         {"-", 4, EXPRESSION_SUBTRACT, false, false},
                 {"*", 5, EXPRESSION_TIMES, false, false},       {"/", 5, EXPRESSION_DIVIDE, false, false},
                 {"%", 5, EXPRESSION_REST, false, false}};

enum { LEVELS = 6 };

struct parser {
    const char *text, *at;
    bool scores;
    int depth;
    struct expression *out;
    char *why;
};

static int parse_choice(struct parser *p);

static int refuse(struct parser *p, const char *at, const char *what)
{
    if (!*p->why)
        snprintf(p->why, EXPRESSION_WHY_BYTES, "column %d: %s", (int)(at - p->text) + 1, what);
    return -1;
}

static int refuse_found(struct parser *p, const char *expected)
{
    char what[EXPRESSION_WHY_BYTES], word[40];
    size_t n = strcspn(p->at, " \t");
    if (*p->at)
        snprintf(what, sizeof what, "expected %s, found `%s`", expected, text_name(p->at, n, word, sizeof word));
    else
        snprintf(what, sizeof what, "expected %s, found the end", expected);
    return refuse(p, p->at, what);
}

static void skip_blanks(struct parser *p)
{
    p->at += strspn(p->at, " \t");
}

static bool take(struct parser *p, const char *sign)
{
    const size_t n = strlen(sign);
    skip_blanks(p);
    if (strncmp(p->at, sign, n) != 0)
        return false;
    p->at += n;
    return true;
}

static int add(struct parser *p, const struct expression_node *node)
{
    if (p->out->n == EXPRESSION_NODES)
        return refuse(p, p->at, "the formula has too many parts");
    p->out->node[p->out->n] = *node;
    return p->out->n++;
}

static int add_op(struct parser *p, enum expression_op op, bool real, int a, int b, int c)
{
    struct expression_node node = {.op = (uint8_t)op, .real = real, .operand = {(int16_t)a, (int16_t)b, (int16_t)c}};
    for (int i = 0; i < 3; i++)
        node.real = node.real || (node.operand[i] >= 0 && p->out->node[node.operand[i]].real);
    return add(p, &node);
}

/* What has been read from `first` on is that node. */
static int spans(const struct parser *p, const char *first, int node)
{
    if (node >= 0) {
        p->out->node[node].first = (uint16_t)(first - p->text);
        p->out->node[node].end = (uint16_t)(p->at - p->text);
    }
    return node;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int parse_number(struct parser *p)
{
    const char *first = p->at, *end = first;
    struct expression_node node = {.op = EXPRESSION_NUMBER, .operand = {-1, -1, -1}};
    end += strspn(end, "0123456789");
    if (*end == '.')
        node.real = true, end += 1 + strspn(end + 1, "0123456789");
    const char *exponent = end + 1 + (*end && (end[1] == '+' || end[1] == '-'));
    if ((*end == 'e' || *end == 'E') && is_digit(*exponent))
        node.real = true, end = exponent + strspn(exponent, "0123456789");
    if (is_letter(*end))
        return refuse_found(p, "a number");
    errno = 0;
    if (node.real)
        node.number = strtod(first, NULL); /* LC_NUMERIC is never set */
    else
        node.whole = strtoll(first, NULL, 10);
    if (errno && (!node.real || isinf(node.number)))
        return refuse(p, first, "the number is too large");
    if (node.real && !p->scores)
        return refuse(p, first, "expected a whole number: a mask has no others");
    p->at = end;
    return add(p, &node);
}

static int parse_call(struct parser *p, const char *name, size_t f)
{
    int operand[2] = {-1, -1};
    if (functions[f].real && !p->scores)
        return refuse(p, name, "expected whole numbers: a mask has no such function");
    if (!take(p, "("))
        return refuse_found(p, "`(`");
    for (int i = 0; i < functions[f].operands; i++)
        if ((i > 0 && !take(p, ",") && refuse_found(p, "`,`")) || (operand[i] = parse_choice(p)) < 0)
            return -1;
    return take(p, ")") ? add_op(p, functions[f].op, functions[f].real, operand[0], operand[1], -1)
                        : refuse_found(p, "`)`");
}

static int parse_name(struct parser *p)
{
    const char *name = p->at;
    const int n_variables = p->scores ? EXPRESSION_S + 1 : EXPRESSION_WHOLE;
    size_t n = 0;
    while (is_letter(name[n]) || is_digit(name[n]))
        n++;
    for (int v = 0; v < n_variables; v++)
        if (strlen(variables[v]) == n && memcmp(variables[v], name, n) == 0) {
            p->at += n;
            p->out->uses |= 1u << v;
            return add(p,
                       &(struct expression_node){
                           .op = EXPRESSION_VARIABLE, .real = v == EXPRESSION_S, .operand = {-1, -1, -1}, .whole = v});
        }
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        if (strlen(functions[f].name) == n && memcmp(functions[f].name, name, n) == 0) {
            p->at += n;
            return parse_call(p, name, f);
        }
    return refuse_found(p, p->scores ? "s, i, j, h, b, q_len, kv_len or a function"
                                     : "i, j, h, b, q_len, kv_len, abs, min or max");
}

static int parse_operand(struct parser *p)
{
    int node = -1;
    const char *first = (skip_blanks(p), p->at);
    if (++p->depth > EXPRESSION_DEPTH)
        return refuse(p, p->at, "the formula is nested too deeply");
    if (is_digit(*p->at) || (*p->at == '.' && is_digit(p->at[1]))) {
        node = parse_number(p);
    } else if (is_letter(*p->at)) {
        node = parse_name(p);
    } else if (take(p, "(")) {
        node = parse_choice(p);
        if (node >= 0 && !take(p, ")"))
            node = refuse_found(p, "`)`");
    } else if (take(p, "-") || take(p, "!")) {
        const enum expression_op op = p->at[-1] == '-' ? EXPRESSION_MINUS : EXPRESSION_NOT;
        node = parse_operand(p);
        node = node < 0 ? -1 : add_op(p, op, false, node, -1, -1);
    } else {
        node = refuse_found(p, "a number, a name or `(`");
    }
    p->depth--;
    return spans(p, first, node);
}

/* The operator of this level that stands here, or -1. */
static int operator_here(struct parser *p, int level)
{
    for (int i = 0; i < (int)(sizeof operators / sizeof *operators); i++)
        if (operators[i].level == level && take(p, operators[i].text))
            return i;
    return -1;
}

static int parse_level(struct parser *p, int level)
{
    const char *first = (skip_blanks(p), p->at);
    int left = level < LEVELS ? parse_level(p, level + 1) : parse_operand(p);
    while (left >= 0 && level < LEVELS) {
        const char *before = (skip_blanks(p), p->at);
        const int found = operator_here(p, level);
        if (found < 0)
            break;
        const int right = parse_level(p, level + 1);
        if (right < 0)
            return -1;
        const bool real = p->out->node[left].real || p->out->node[right].real;
        if (operators[found].op == EXPRESSION_REST && real)
            return refuse(p, before, "% takes whole numbers, made of indices");
        left = operators[found].exchanged ? add_op(p, operators[found].op, false, right, left, -1)
                                          : add_op(p, operators[found].op, false, left, right, -1);
        spans(p, first, left);
        if (left >= 0 && operators[found].negated)
            left = spans(p, first, add_op(p, EXPRESSION_NOT, false, left, -1, -1));
    }
    return left;
}

static int parse_choice(struct parser *p)
{
    if (++p->depth > EXPRESSION_DEPTH)
        return refuse(p, p->at, "the formula is nested too deeply");
    const char *first = (skip_blanks(p), p->at);
    int node = parse_level(p, 0);
    if (node >= 0 && take(p, "?")) {
        const int yes = parse_choice(p);
        if (yes >= 0 && !take(p, ":"))
            return refuse_found(p, "`:`");
        const int no = yes >= 0 ? parse_choice(p) : -1;
        node = no >= 0 ? spans(p, first, add_op(p, EXPRESSION_CHOICE, false, node, yes, no)) : -1;
    }
    p->depth--;
    return node;
}

int expression_parse(const char *text, bool scores, struct expression *out, char why[EXPRESSION_WHY_BYTES])
{
    struct parser p = {text, text, scores, 0, out, why};
    memset(out, 0, sizeof *out);
    why[0] = '\0';
    if (parse_choice(&p) < 0)
        return -1;
    skip_blanks(&p);
    return *p.at ? refuse_found(&p, "an operator or the end") : 0;
}

static bool two(enum expression_op op, int64_t a, int64_t b, int64_t *out)
{
    switch (op) {
    case EXPRESSION_ADD:
        return !__builtin_add_overflow(a, b, out);
    case EXPRESSION_SUBTRACT:
        return !__builtin_sub_overflow(a, b, out);
    case EXPRESSION_TIMES:
        return !__builtin_mul_overflow(a, b, out);
    case EXPRESSION_DIVIDE:
    case EXPRESSION_REST:
        if (b == 0 || (a == INT64_MIN && b == -1))
            return false;
        *out = op == EXPRESSION_DIVIDE ? a / b : a % b;
        return true;
    case EXPRESSION_LESS:
        *out = a < b;
        return true;
    case EXPRESSION_LESS_EQUAL:
        *out = a <= b;
        return true;
    case EXPRESSION_EQUAL:
        *out = a == b;
        return true;
    case EXPRESSION_MIN:
        *out = a < b ? a : b;
        return true;
    default: /* EXPRESSION_MAX */
        *out = a > b ? a : b;
        return true;
    }
}

bool expression_whole(const struct expression *e, int node, const int64_t at[EXPRESSION_WHOLE], int64_t *out)
{
    const struct expression_node *n = &e->node[node];
    int64_t a = 0;
    int64_t b = 0;
    if (n->op == EXPRESSION_NUMBER || n->op == EXPRESSION_VARIABLE) {
        *out = n->op == EXPRESSION_NUMBER ? n->whole : at[n->whole];
        return true;
    }
    if (!expression_whole(e, n->operand[0], at, &a))
        return false;
    switch ((enum expression_op)n->op) {
    case EXPRESSION_MINUS:
        return !__builtin_sub_overflow((int64_t)0, a, out);
    case EXPRESSION_NOT:
        *out = !a;
        return true;
    case EXPRESSION_ABS:
        *out = a;
        return a >= 0 || !__builtin_sub_overflow((int64_t)0, a, out);
    case EXPRESSION_CHOICE:
        return expression_whole(e, n->operand[a ? 1 : 2], at, out);
    case EXPRESSION_AND:
    case EXPRESSION_OR:
        *out = n->op == EXPRESSION_OR;
        if ((a != 0) == (n->op == EXPRESSION_OR))
            return true;
        if (!expression_whole(e, n->operand[1], at, &b))
            return false;
        *out = b != 0;
        return true;
    default:
        return expression_whole(e, n->operand[1], at, &b) && two((enum expression_op)n->op, a, b, out);
    }
}
