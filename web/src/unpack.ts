// LZMA, as `xz --format=lzma` writes it: the compiled simulator becomes a third smaller than with the formats that
// browsers unpack themselves, and scripts a sixth.
// After the LZMA specification of I. Pavlov (2015, in the public domain).

const HALF = 1 << 10;
const TOP = 2 ** 24;

/// Probabilities of `count` binary decisions, each as likely as not in the beginning.
const even = (count: number) => new Uint16Array(count).fill(HALF);

/// The range coder: one binary decision after the other.
class Bits {
  private range = 0xffffffff;
  private code = 0;

  constructor(private readonly bytes: Uint8Array, private at: number) {
    // The first byte is always zero.
    this.at++;
    for (let n = 0; n < 4; n++) this.code = (this.code * 256 + this.byte()) >>> 0;
  }

  private byte(): number {
    if (this.at >= this.bytes.length) throw new Error("the simulator in this page is cut short: load the page again");
    return this.bytes[this.at++] ?? 0;
  }

  private widen(): void {
    if (this.range >= TOP) return;
    this.range = (this.range << 8) >>> 0;
    this.code = ((this.code << 8) | this.byte()) >>> 0;
  }

  bit(odds: Uint16Array, at: number): number {
    const odd = odds[at] ?? HALF;
    const bound = (this.range >>> 11) * odd;
    let bit = 0;
    if (this.code < bound) {
      this.range = bound;
      odds[at] = odd + ((2048 - odd) >> 5);
    } else {
      this.range -= bound;
      this.code -= bound;
      odds[at] = odd - (odd >> 5);
      bit = 1;
    }
    this.widen();
    return bit;
  }

  /// Bits of which each value is as likely as the other.
  plain(count: number): number {
    let value = 0;
    for (let n = 0; n < count; n++) {
      this.range >>>= 1;
      const bit = this.code >= this.range ? 1 : 0;
      if (bit) this.code -= this.range;
      this.widen();
      value = value * 2 + bit;
    }
    return value;
  }

  /// A number whose highest bit comes first; the odds of each bit depend on those before it.
  tree(odds: Uint16Array, begin: number, bits: number): number {
    let at = 1;
    for (let n = 0; n < bits; n++) at = (at << 1) | this.bit(odds, begin + at);
    return at - (1 << bits);
  }

  /// The same with the lowest bit first.
  reverse(odds: Uint16Array, begin: number, bits: number): number {
    let [at, value] = [1, 0];
    for (let n = 0; n < bits; n++) {
      const bit = this.bit(odds, begin + at);
      at = (at << 1) | bit;
      value |= bit << n;
    }
    return value;
  }
}

/// Lengths of matches: 3 bits, 3 bits, or 8 bits.
class Lengths {
  private readonly choice = even(2);
  private readonly short = even(16 << 3);
  private readonly middle = even(16 << 3);
  private readonly long = even(256);

  read(bits: Bits, place: number): number {
    if (!bits.bit(this.choice, 0)) return bits.tree(this.short, place << 3, 3);
    if (!bits.bit(this.choice, 1)) return 8 + bits.tree(this.middle, place << 3, 3);
    return 16 + bits.tree(this.long, 0, 8);
  }
}

/// Takes an element out of the page and unpacks what it holds in base64. Its `data-length` is the number of unpacked
/// bytes.
export function unpacked(place: HTMLElement): Uint8Array<ArrayBuffer> {
  const packed = Uint8Array.from(atob(place.textContent ?? ""), (c) => c.charCodeAt(0));
  place.remove();
  return unpack(packed, Number(place.dataset.length));
}

/// Unpacks what becomes `length` bytes.
function unpack(packed: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const settings = packed[0] ?? 0;
  const [lc, lp, pb] = [settings % 9, Math.floor(settings / 9) % 5, Math.floor(settings / 45)];
  const bits = new Bits(packed, 13);
  const out = new Uint8Array(length);
  const literals = even(0x300 << (lc + lp));
  const [isMatch, isRepeat, isOther, isThird, isFourth, isLong] = [even(12 << 4), even(12), even(12), even(12), even(12), even(12 << 4)];
  const [slots, special, align] = [even(4 << 6), even(128), even(16)];
  const [lengths, repeated] = [new Lengths(), new Lengths()];
  /// The last four distances, less one.
  let [rep0, rep1, rep2, rep3] = [0, 0, 0, 0];
  let [state, at] = [0, 0];

  while (at < length) {
    const place = at & ((1 << pb) - 1);
    if (!bits.bit(isMatch, (state << 4) + place)) {
      const before = at > 0 ? (out[at - 1] ?? 0) : 0;
      const odds = 0x300 * (((at & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
      let symbol = 1;
      // Behind a match, the byte that would continue it tells much about the next.
      if (state >= 7) {
        let other = out[at - rep0 - 1] ?? 0;
        while (symbol < 0x100) {
          const expected = (other >> 7) & 1;
          other <<= 1;
          const bit = bits.bit(literals, odds + ((1 + expected) << 8) + symbol);
          symbol = (symbol << 1) | bit;
          if (bit !== expected) break;
        }
      }
      while (symbol < 0x100) symbol = (symbol << 1) | bits.bit(literals, odds + symbol);
      out[at++] = symbol;
      state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
      continue;
    }
    let count: number;
    if (bits.bit(isRepeat, state)) {
      if (!bits.bit(isOther, state)) {
        if (!bits.bit(isLong, (state << 4) + place)) {
          out[at] = out[at - rep0 - 1] ?? 0;
          at++;
          state = state < 7 ? 9 : 11;
          continue;
        }
      } else {
        let distance = rep1;
        if (bits.bit(isThird, state)) {
          distance = rep2;
          if (bits.bit(isFourth, state)) {
            distance = rep3;
            rep3 = rep2;
          }
          rep2 = rep1;
        }
        rep1 = rep0;
        rep0 = distance;
      }
      count = repeated.read(bits, place);
      state = state < 7 ? 8 : 11;
    } else {
      [rep3, rep2, rep1] = [rep2, rep1, rep0];
      count = lengths.read(bits, place);
      state = state < 7 ? 7 : 10;
      const slot = bits.tree(slots, Math.min(count, 3) << 6, 6);
      rep0 = slot;
      if (slot >= 4) {
        const direct = (slot >> 1) - 1;
        rep0 = (2 | (slot & 1)) * 2 ** direct;
        if (slot < 14) rep0 += bits.reverse(special, rep0 - slot, direct);
        else rep0 += bits.plain(direct - 4) * 16 + bits.reverse(align, 0, 4);
      }
      if (rep0 === 0xffffffff) break;
    }
    if (rep0 >= at) throw new Error("the simulator in this page is damaged: load the page again");
    for (let n = count + 2; n > 0 && at < length; n--, at++) out[at] = out[at - rep0 - 1] ?? 0;
  }
  return out;
}
