/** A UUID of any version, in either case. As text, for JSON Schema. */
export const UUID_PATTERN = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$';

const UUID = new RegExp(UUID_PATTERN);

/** Of any version, in either case. PostgreSQL fails a statement, and the transaction around it, that compares a uuid with any other text. */
export function isUuid(text: string): boolean {
  // A key is looked at as a parameter, as a value of its column and as one of a statement: the same text each time.
  if (text === known) return true;
  if (text.length !== 36 || !UUID.test(text)) return false;
  known = text;
  return true;
}

let known = '';
