/* The standard normal distribution by arithmetic alone: the C library's log differs between machines in the last bit,
   and inputs must not. + - * / and sqrt are exact to the last bit under IEEE 754 (built with -ffp-contract=off). */
#ifndef SCENARIO_NORMAL_H
#define SCENARIO_NORMAL_H

/* The x below which a normal value lies with probability p, 0 < p < 1. */
double normal_quantile(double p);
/* The same of each of n. */
void normal_quantiles(const double *p, int n, double *x);
/* ln x for finite normal x > 0, within 2 ulp. */
double normal_log(double x);

#endif
