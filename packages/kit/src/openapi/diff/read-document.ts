import { isMembers } from '../../options/value-rule.ts';
import { type Json } from './flat-schema.ts';

/** The document in a text, or one sentence about what is wrong with it. */
export function readOpenApi(text: string): { readonly document: Json } | { readonly fault: string } {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    return { fault: `is not an OpenAPI document in JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  const { openapi, swagger, paths } = isMembers(document) ? document : ({} as Json);
  if (swagger !== undefined)
    return {
      fault: `is a Swagger ${typeof swagger === 'string' ? swagger : '2.0'} document, which is not supported. Convert it to OpenAPI 3.0 or newer first.`,
    };
  // Compared with anything else every operation would be new, which breaks nobody.
  if (typeof openapi !== 'string' || !isMembers(paths) || !isMembers(document))
    return { fault: 'is not an OpenAPI document in JSON: it has no `openapi` and `paths`. Write one with: npx kit openapi --out <file>' };
  if (!/^3\.[0-2](?:\.|$)/.test(openapi)) return { fault: `is an OpenAPI ${openapi} document. Versions 3.0, 3.1 and 3.2 are supported.` };
  const outside = externalReference(document);
  if (outside !== undefined)
    return { fault: `refers to ${JSON.stringify(outside)}, outside of the document. Nothing is fetched: bundle it into one file first.` };
  return { document };
}

function externalReference(value: unknown): string | undefined {
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (Array.isArray(next)) for (const item of next) pending.push(item);
    else if (isMembers(next))
      for (const [key, inner] of Object.entries(next)) {
        if (key === '$ref' && typeof inner === 'string' && !inner.startsWith('#')) return inner;
        // An example may hold anything.
        if (key !== 'example' && key !== 'examples' && key !== 'default' && key !== 'enum' && key !== 'const') pending.push(inner);
      }
  }
  return undefined;
}
