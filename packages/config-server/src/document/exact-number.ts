// JSON numbers are read as IEEE doubles. Refusing a value is better than silently changing it, so these functions decide what a
// double carries exactly.

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

export function isJsonNumber(text: string): boolean {
  return JSON_NUMBER.test(text);
}

/** Whether printing the parsed number gives back the same decimal value that was written. */
export function isCarriedExactly(text: string): boolean {
  const value = Number(text);
  if (!Number.isFinite(value)) return false;
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && !/[.eE]/.test(text)) return false;
  return canonicalDecimal(text) === canonicalDecimal(String(value));
}

/** Sign, significant digits and power of ten: equal for texts that denote the same decimal number. */
function canonicalDecimal(text: string): string {
  const [mantissa = '', exponentText = '0'] = text.toLowerCase().split('e');
  const negative = mantissa.startsWith('-');
  const [whole = '', fraction = ''] = mantissa.replace(/^[+-]/, '').split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const exponent = BigInt(exponentText) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${negative ? '-' : ''}${significant}e${exponent}`;
}
