import { visitSensitive } from '../../db/declare/sensitive-members.ts';
import type { JsonSchema } from '../declare/schema.ts';

/** What requests carried, for as long as somebody holds it. */
const schemas = new WeakMap<object, JsonSchema>();

/** Keeps which schema an input, and every object inside it, has: a log record with it masks what the schema marks. */
export function rememberInput(value: unknown, schema: JsonSchema): void {
  visitSensitive(schema, value, (part, at) => void schemas.set(part, at));
}

/** The schema of an object that came in a request and may hold something sensitive. */
export function schemaOfInput(value: object): JsonSchema | undefined {
  return schemas.get(value);
}
