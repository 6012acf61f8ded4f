import { coreErrors } from '../errors/core-errors.ts';
import type { Middleware } from '../http/exchange/middleware.ts';
import { readOptions } from '../options/read-options.ts';
import { listOf, required, rule } from '../options/value-rule.ts';

export interface ContentTypeOptions {
  /** Media types a body may have, without parameters: `application/json`, `application/*`. */
  readonly allow: readonly string[];
}

const mediaType = rule(
  'a media type such as "application/json"',
  (value) => typeof value === 'string' && /^[\w.+-]+\/([\w.+-]+|\*)$/.test(value),
);

/** Refuses a body of another media type before anything else is done with the request: 415 `unsupported_media_type`. */
export function contentType(options: ContentTypeOptions): Middleware {
  const { allow } = readOptions('contentType()', options, { allow: required(listOf(mediaType, { min: 1 })) });
  const exact = new Set(allow.map((type) => type.toLowerCase()));
  const families = [...exact].filter((type) => type.endsWith('/*')).map((type) => type.slice(0, -1));
  return {
    name: 'content_type',
    onRequest({ headers }) {
      const length = headers['content-length'];
      const hasBody = headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
      if (!hasBody) return;
      const type = String(headers['content-type'] ?? '')
        .split(';', 1)[0]!
        .trim()
        .toLowerCase();
      if (exact.has(type) || families.some((family) => type.startsWith(family))) return;
      throw coreErrors.unsupported_media_type({ extensions: { allowed: [...exact] } });
    },
  };
}
