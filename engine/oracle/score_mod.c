#include "engine/oracle/score_mod.h"

#include "engine/oracle/bound.h"
#include "engine/trace/expression.h"
#include <float.h>

/* A number and how far a correct kernel may be from it; of a truth value, 0 or 1, the error is 0 or, where it may be
   either, 1. x NaN: nothing is known. */
struct about {
    double x, error;
};

static const struct about nothing = {NAN, 0};

struct evaluating {
    const struct oracle_case *c;
    const struct expression *e;
    int64_t at[EXPRESSION_WHOLE];
    struct about score;
};

static struct about value_of(const struct evaluating *v, int node);

/* An operation that errs by `roundings` units of what a kernel gets, which is x but for the error that comes in. */
static struct about rounded(double x, double error, double roundings)
{
    const double all = error + roundings * BOUND_U * (fabs(x) + error) * BOUND_SLACK + BOUND_TINY;
    return fabs(x) + all <= (double)FLT_MAX ? (struct about){x, all} : nothing;
}

/* A number of the formula, or one that is made of indices: rounded to f32, and where a kernel computes in units of
   log2 e or 1 / scale, multiplied by that constant, which has been rounded: 3 u. */
static struct about exact(double x)
{
    return rounded(x, 0, 3);
}

/* Relative error of a quotient of a and b where |b| > error of b: a / b - a' / b' is (a (b' - b) - (a' - a) b) / (b
   b'), |b'| at least |b| - error. Division itself errs by 4 u (bound_divide). */
static struct about divided(struct about a, struct about b)
{
    const double least = fabs(b.x) - b.error;
    if (!(least > 0))
        return nothing;
    return rounded(a.x / b.x, (fabs(a.x) * b.error + a.error * fabs(b.x)) / (fabs(b.x) * least), 4);
}

static struct about product(struct about a, struct about b)
{
    return rounded(a.x * b.x, fabs(a.x) * b.error + fabs(b.x) * a.error + a.error * b.error, 1);
}

/* exp(x') is exp(x) e^(x' - x); then as bound_exp has it. */
static struct about exponential(const struct oracle_case *c, struct about a)
{
    const double x = exp(a.x), moved = x * bound_expm1(a.error);
    return rounded(x, moved + (x + moved) * bound_exp_declared(c, fabs(a.x) + a.error, 0), 0);
}

/* Steepest where the argument is least: log x - log(x - error). Then as bound_lse has __logf. */
static struct about logarithm(struct about a)
{
    const double x = log(a.x);
    return a.x > a.error ? rounded(x, -log1p(-a.error / a.x) + 3.6e-7, 6) : nothing;
}

/* sqrt x - sqrt(x - error) = error / (sqrt x + sqrt(x - error)). sqrt.approx.f32 errs by 2^-23 (PTX ISA), x
   rsqrt.approx by 2^-22.4 (PTX ISA) and a product: 4 u. */
static struct about root(struct about a)
{
    const double low = a.x - a.error;
    return low >= 0 ? rounded(sqrt(a.x), a.error > 0 ? a.error / (sqrt(a.x) + sqrt(low)) : 0, 4) : nothing;
}

/* As cap_score() has it: steepest at the end nearest 0, where the slope is 1 - tanh^2. */
static struct about hyperbolic(const struct oracle_case *c, struct about a)
{
    const double x = tanh(a.x), flat = tanh(fmax(0, fabs(a.x) - a.error));
    return rounded(x, fmin((1 - flat * flat) * a.error, 2) + bound_tanh(c) * fabs(x), 0);
}

static struct about truth(bool is, bool may_differ)
{
    return (struct about){is, may_differ};
}

/* What a condition makes of a number: whether it is 0. */
static struct about truth_of(struct about a)
{
    return isnan(a.x) ? nothing : truth(a.x != 0, a.error > 0 && fabs(a.x) <= a.error);
}

static struct about compared(enum expression_op op, struct about a, struct about b)
{
    const double apart = fabs(a.x - b.x), off = a.error + b.error;
    return truth(op == EXPRESSION_LESS         ? a.x < b.x
                 : op == EXPRESSION_LESS_EQUAL ? a.x <= b.x
                                               : !(a.x < b.x) && !(a.x > b.x),
                 off > 0 && apart <= off);
}

/* A node as a condition: one that is made of indices is known. */
static struct about condition(const struct evaluating *v, int node)
{
    int64_t whole = 0;
    if (v->e->node[node].real)
        return truth_of(value_of(v, node));
    return expression_whole(v->e, node, v->at, &whole) ? truth(whole != 0, false) : nothing;
}

/* Where either may be chosen the error reaches as far as the other one does. */
static struct about chosen(const struct evaluating *v, const struct expression_node *n)
{
    const struct about is = condition(v, n->operand[0]);
    if (isnan(is.x))
        return nothing;
    const struct about own = value_of(v, n->operand[is.x != 0 ? 1 : 2]);
    if (is.error == 0)
        return own;
    const struct about other = value_of(v, n->operand[is.x != 0 ? 2 : 1]);
    return isnan(other.x) ? nothing : (struct about){own.x, fmax(own.error, fabs(own.x - other.x) + other.error)};
}

/* && and ||: the second is not asked where the first decides. */
static struct about joined(const struct evaluating *v, const struct expression_node *n)
{
    const bool decides = n->op == EXPRESSION_OR;
    const struct about a = condition(v, n->operand[0]);
    if (isnan(a.x) || (a.error == 0 && (a.x != 0) == decides))
        return a;
    const struct about b = condition(v, n->operand[1]);
    if (isnan(b.x) || a.error == 0 || (b.error == 0 && (b.x != 0) == decides))
        return b;
    return truth((a.x != 0) == decides ? decides : b.x != 0, true);
}

static struct about value_of(const struct evaluating *v, int node)
{
    const struct expression_node *n = &v->e->node[node];
    const enum expression_op op = (enum expression_op)n->op;
    int64_t whole = 0;
    if (!n->real)
        return expression_whole(v->e, node, v->at, &whole) ? exact((double)whole) : nothing;
    if (op == EXPRESSION_NUMBER)
        return exact(n->number);
    if (op == EXPRESSION_VARIABLE)
        return v->score;
    if (op == EXPRESSION_CHOICE)
        return chosen(v, n);
    if (op == EXPRESSION_AND || op == EXPRESSION_OR)
        return joined(v, n);
    const struct about a = value_of(v, n->operand[0]);
    const struct about b = n->operand[1] >= 0 ? value_of(v, n->operand[1]) : (struct about){0, 0};
    if (isnan(a.x) || isnan(b.x))
        return nothing;
    switch (op) {
    case EXPRESSION_MINUS:
        return (struct about){-a.x, a.error};
    case EXPRESSION_NOT: {
        const struct about is = truth_of(a);
        return truth(is.x == 0, is.error > 0);
    }
    case EXPRESSION_ABS:
        return (struct about){fabs(a.x), a.error};
    case EXPRESSION_EXP:
        return exponential(v->c, a);
    case EXPRESSION_LOG:
        return logarithm(a);
    case EXPRESSION_TANH:
        return hyperbolic(v->c, a);
    case EXPRESSION_SQRT:
        return root(a);
    case EXPRESSION_ADD:
        return rounded(a.x + b.x, a.error + b.error, 1);
    case EXPRESSION_SUBTRACT:
        return rounded(a.x - b.x, a.error + b.error, 1);
    case EXPRESSION_TIMES:
        return product(a, b);
    case EXPRESSION_DIVIDE:
        return divided(a, b);
    case EXPRESSION_MIN: /* |min(a', b') - min(a, b)| is at most the larger of the two errors, and so with max */
        return (struct about){fmin(a.x, b.x), fmax(a.error, b.error)};
    case EXPRESSION_MAX:
        return (struct about){fmax(a.x, b.x), fmax(a.error, b.error)};
    default:
        return compared(op, a, b);
    }
}

double score_mod_at(const struct oracle_case *c, int r, int key, double s, double *bound)
{
    /* The score may stand in another unit before and go on in one: bound_convert each. */
    const struct evaluating v = {
        .c = c,
        .e = c->score_mod,
        .at = {(int64_t)c->q_tile * c->br + r, key, c->place[1], c->place[0], c->q_len, c->kv_len},
        .score = {s, *bound + bound_convert(s)}};
    const struct about out = isfinite(s) ? value_of(&v, c->score_mod->n - 1) : nothing;
    *bound = isnan(out.x) ? 0 : out.error + bound_convert(out.x);
    return isfinite(*bound) ? out.x : NAN;
}
