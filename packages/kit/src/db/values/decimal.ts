const FORM = /^(-?)(\d+)(?:\.(\d*))?$/;

/**
 * The one spelling of a decimal: no leading zeros, exactly `scale` digits, no negative zero; as PostgreSQL's
 * numeric(p, s) prints it. Undefined when digits would be lost or the text is no decimal.
 */
export function parseDecimal(text: string, scale: number, precision?: number): string | undefined {
  const parts = FORM.exec(text);
  if (parts === null) return undefined;
  const [, sign = '', digitsBefore = '', given = ''] = parts;
  const whole = withoutLeadingZeros(digitsBefore);
  const fraction = withoutTrailingZeros(given);
  if (fraction.length > scale) return undefined;
  if (precision !== undefined && whole !== '0' && whole.length > precision - scale) return undefined;
  const digits = scale === 0 ? whole : `${whole}.${fraction.padEnd(scale, '0')}`;
  return sign === '-' && /[1-9]/.test(digits) ? `-${digits}` : digits;
}

/** For reading: the canonical spelling, or the text as stored when it is not a decimal of this scale. */
export function canonicalDecimal(text: string, scale: number): string {
  // Almost every stored decimal is canonical already: a digit 1–9 first and the point in its place.
  const first = text.charCodeAt(0);
  if (first >= 49 && first <= 57 && scale > 0 && text.charCodeAt(text.length - scale - 1) === 46) return text;
  return parseDecimal(text, scale) ?? text;
}

// Loops, not patterns: one that may begin or end at any of many zeros takes the square of their number to say no, and the text is a caller's.
function withoutLeadingZeros(digits: string): string {
  let start = 0;
  while (start < digits.length - 1 && digits.charCodeAt(start) === 48) start += 1;
  return digits.slice(start);
}

function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === 48) end -= 1;
  return digits.slice(0, end);
}

/** What a value of a decimal column must look like, as the end of a sentence. */
export function decimalForm(precision: number, scale: number): string {
  const [before, after] = ['12'.slice(0, precision - scale) || '0', '50'.slice(0, scale)];
  const example = after === '' ? before : `${before}.${after}`;
  return `must be a decimal number such as "${example}", with at most ${precision - scale} digits before and ${scale} after the point`;
}
