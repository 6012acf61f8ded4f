const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Of any version, in either case. PostgreSQL fails a statement, and the transaction around it, that compares a uuid with any other text. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
