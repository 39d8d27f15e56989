/* Does a mean differ from zero, where elements of one row, and of one column, err together?

   The model is y = intercept + slope g + error, g = +1 or -1 the sign of what y is the error of: truncation, which
   pulls toward zero, is the slope's; what pulls to one side is the intercept's. The variance is that of Cameron,
   Gelbach and Miller, "Robust inference with multiway clustering", 2011: the outer products of the scores summed by
   row, plus those by column, minus those of single elements. All of it follows from the sums below, so that nothing is
   read twice. */
#ifndef ROUNDING_BIAS_CLUSTERED_H
#define ROUNDING_BIAS_CLUSTERED_H

/* Over the elements of one row or column: of 1, g, y and g y. */
struct cluster {
    double n, g, y, gy;
};

/* Over all elements of a group: the same, y^2 and g y^2, and how many of y are not zero. */
struct cluster_total {
    struct cluster sum;
    double yy, gyy, rounded;
};

enum clustered_state {
    CLUSTERED_FITTED,
    CLUSTERED_NOTHING,    /* no element at all */
    CLUSTERED_EXACT,      /* every y is zero */
    CLUSTERED_FEW,        /* too few rows or columns for the variance to be known */
    CLUSTERED_UNBALANCED, /* nearly all signs are the same: the two effects cannot be told apart */
    CLUSTERED_COARSE      /* most y are zero: what is left repeats */
};

struct clustered {
    enum clustered_state state;
    double intercept, error; /* and its standard error */
    double slope, slope_error;
    double z; /* intercept / error, as a standard normal number of the same probability: see clustered_normal */
};

/* An element into its row, its column and the group; g is not zero. */
static inline void cluster_add(struct cluster *row, struct cluster *col, struct cluster_total *total, double g,
                               double y)
{
    struct cluster *const to[] = {row, col, &total->sum};
    for (int i = 0; i < 3; i++) {
        to[i]->n += 1;
        to[i]->g += g;
        to[i]->y += y;
        to[i]->gy += g * y;
    }
    total->yy += y * y;
    total->gyy += g * y * y;
    total->rounded += y != 0;
}

void cluster_merge(struct cluster *to, const struct cluster *from);
void cluster_total_merge(struct cluster_total *to, const struct cluster_total *from);

/* Rows and columns may be empty. */
struct clustered clustered_fit(const struct cluster *rows, int n_rows, const struct cluster *cols, int n_cols,
                               const struct cluster_total *total);

/* Student's t of so many degrees of freedom as a standard normal number: Wallace, "Bounds on normal approximations to
   Student's and the chi-square distributions", 1959; off by less than 0.02 for df >= 15 and |t| <= 12. */
double clustered_normal(double t, double df);

#endif
