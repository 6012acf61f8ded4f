/** A UUID of any version, in either case. As text, for JSON Schema. */
export const UUID_PATTERN = '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$';

const UUID = new RegExp(UUID_PATTERN);

/** Of any version, in either case. PostgreSQL fails a statement, and the transaction around it, that compares a uuid with any other text. */
export function isUuid(text: string): boolean {
  // A key and its owner are looked at as parameters, as values of their columns and as those of a statement: the same two texts each time.
  if (text === last || text === lastButOne) return true;
  if (text.length !== 36 || !UUID.test(text)) return false;
  lastButOne = last;
  last = text;
  return true;
}

let last = '';
let lastButOne = '';
