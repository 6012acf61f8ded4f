import { isMembers } from '../options/value-rule.ts';

type Json = Readonly<Record<string, unknown>>;

/** The codes that every operation of a document may meet: those of its `default` response. */
export function codesAnywhere({ components }: Json): ReadonlySet<string> {
  const responses = isMembers(components) && isMembers(components['responses']) ? components['responses'] : {};
  return new Set(isMembers(responses['Error']) ? textsIn(responses['Error']['x-error-codes']) : []);
}

/**
 * The codes that a response documents for its operation. In documents of the toolkit those are the values of `code`, without the ones that every operation
 * may meet where there are others; other documents list them in `x-error-codes`. Undefined: it documents none.
 */
export function errorCodesOf(response: Json, anywhere: ReadonlySet<string>): readonly string[] | undefined {
  if (response['x-error-codes'] !== undefined) return textsIn(response['x-error-codes']);
  if (anywhere.size === 0) return undefined;
  const codes = Object.values(isMembers(response['content']) ? response['content'] : {}).flatMap(codesIn);
  const own = codes.filter((code) => !anywhere.has(code));
  return codes.length === 0 ? undefined : own.length === 0 ? codes : own;
}

/** The values of `code` in the schema of a body. */
function codesIn(media: unknown): string[] {
  const schema = isMembers(media) ? media['schema'] : undefined;
  const parts: unknown = isMembers(schema) ? schema['allOf'] : undefined;
  return (Array.isArray(parts) ? parts : []).flatMap((part: unknown) => {
    const properties = isMembers(part) ? part['properties'] : undefined;
    const code = isMembers(properties) ? properties['code'] : undefined;
    return isMembers(code) ? textsIn(code['enum']) : [];
  });
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
