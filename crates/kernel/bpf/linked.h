/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The linked increase of RFC 6356, section 3, Eqs. (1) and (2). */
#ifndef AB_LINKED_H
#define AB_LINKED_H

#include "view.h"

/* Returns min(alpha / cwnd_total, 1 / cwnd): growth in segments per acknowledged segment. */
INLINE number linked_increase(const struct view *v)
{
	number best = real(0, 0), rates = real(0, 0), own = alone(v), coupled;

	EACH_FLOW(f, v) {
		number rate = rate_of(f), steep = over(rate, real(f->srtt, 0));

		best = larger(best, steep);
		rates = plus(rates, rate);
	}
	coupled = over(best, times(rates, rates));
	return pick(is_linked(v), smaller(coupled, own), own);
}

#endif
