const FORM = /^(-?)0*(\d+)(?:\.(\d*))?$/;

/**
 * The one spelling of a decimal: no leading zeros, exactly `scale` digits, no negative zero; as PostgreSQL's
 * numeric(p, s) prints it. Undefined when digits would be lost or the text is no decimal.
 */
export function parseDecimal(text: string, scale: number, precision?: number): string | undefined {
  const parts = FORM.exec(text);
  if (parts === null) return undefined;
  const [, sign = '', whole = '', given = ''] = parts;
  const fraction = given.replace(/0+$/, '');
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
