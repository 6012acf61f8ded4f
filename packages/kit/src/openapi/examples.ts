import type { OpenApiDocument } from './document.ts';
import { useDocument } from './reference/api-document.js';
import { mediaExample } from './reference/example.js';

type Node = Readonly<Record<string, unknown>>;

/** Of JSON bodies: what a file or a form looks like, its schema does not say. */
const IS_JSON = /^application\/(?:[\w.-]+\+)?json$/;

/**
 * The document with an example of each JSON body, as the reference page shows them. On demand, because they would be a third of the document that
 * programs read.
 */
export function withExamples(document: OpenApiDocument): OpenApiDocument {
  useDocument(document);
  return walk(document, false) as OpenApiDocument;
}

function walk(value: unknown, isSent: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => walk(each, isSent));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]): [string, unknown] => [
    name,
    name === 'content' ? contentOf(inner as Node, isSent) : name === 'schemas' ? inner : walk(inner, isSent || name === 'requestBody'),
  ]);
  return Object.fromEntries(entries);
}

function contentOf(content: Node, isSent: boolean): Node {
  return Object.fromEntries(
    Object.entries(content).map(([type, media]) => {
      const has = typeof media === 'object' && media !== null && 'schema' in media && IS_JSON.test(type);
      return [type, has ? { ...media, example: mediaExample(media, isSent) } : media];
    }),
  );
}
