/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * OLIA (draft-khalili-mptcp-congestion-control): linked increases that shift windows to the paths with the longest
 * loss-free runs. Per acknowledged segment, with B the paths of the largest run / rtt^2 and M those of the largest
 * window:
 *   (w / rtt^2) / (sum of w / rtt)^2 + alpha / w
 *   alpha = 1 / (n |B\M|) in B\M, -1 / (n |M|) in M if B\M is not empty, else 0
 */
#include "view.h"

INLINE number quality(const struct flow *f)
{
	number rtt = real(f->srtt, 0);

	return over(real(f->told, 0), times(rtt, rtt));
}

INLINE s64 growth(const struct view *v, const struct memory *m, number acked)
{
	number best = 0, rates = 0, steep = 0, shift, coupled;
	u64 count = 0, collected = 0, largest = 0, is_collected = 0, is_largest = 0, widest = 0, moves;

	EACH_FLOW(f, v) {
		number rate = rate_of(f);

		best = larger(best, quality(f));
		rates = plus(rates, rate);
		widest = larger(widest, f->window & -any(f->srtt));
		count += any(f->srtt);
		steep |= over(rate, real(f->srtt, 0)) & -(u64)f->self;
	}
	EACH_FLOW(f, v) {
		u64 counts = any(f->srtt), wide = counts & (1 - below(f->window, widest));
		u64 good = counts & (1 - wide) & (1 - below(quality(f), best));

		largest += wide;
		collected += good;
		is_largest |= f->self & wide;
		is_collected |= f->self & good;
	}
	coupled = pick(any(steep), over(steep, times(rates, rates)), alone(v));
	coupled = fixed(times(coupled, acked), FRACTION);
	moves = any(collected) & (is_collected | is_largest);
	shift = real(count * pick(is_collected, collected, largest), 0);
	shift = fixed(over(over(acked, shift), window_of(v->cwnd)), FRACTION) & -moves;
	return coupled + pick(is_collected, shift, -shift);
}

INLINE u64 threshold(const struct view *v, const struct memory *m)
{
	return v->cwnd / 2;
}
