/** A value for a JSON column in a hand-built query. */
export class JsonParameter<J = unknown> {
  readonly value: J;

  constructor(value: J) {
    this.value = value;
  }
}

/**
 * Marks a value as JSON for a hand-built query: `updateTable('jobs').set({ result: json([1, 2]) })`. Needed for arrays,
 * strings, numbers, booleans and JSON's own null, which a driver cannot tell from the SQL values of the same kind.
 */
export function json<J>(value: J): JsonParameter<J> {
  return new JsonParameter(value);
}

/** JSON text with bigint as string and dates in ISO 8601, as in responses. */
export function jsonText(value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new TypeError('A JSON column cannot hold undefined or a function.');
  return text;
}

/** A replacer makes JSON.stringify about four times slower, so it is used only where there is a bigint. */
function stringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? item.toString() : item));
  }
}
