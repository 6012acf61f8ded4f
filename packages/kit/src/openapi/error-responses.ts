import type { ErrorFormat } from '../errors/render.ts';
import type { RaisedError } from '../http/compiled-route.ts';
import type { JsonSchema } from '../http/schema.ts';

const FIELD_ERROR: JsonSchema = {
  type: 'object',
  description: 'One fault of the request.',
  properties: {
    location: {
      type: 'array',
      items: { type: ['string', 'integer'] },
      description: 'Where it is, starting with `body`, `query`, `params` or `headers`.',
    },
    code: { type: 'string', description: 'A stable word for the kind of fault.' },
    message: { type: 'string', description: 'What is wrong, for people.' },
  },
  required: ['location', 'code', 'message'],
};

const FAULTS: JsonSchema = {
  type: 'array',
  items: { $ref: '#/components/schemas/FieldError' },
  description: 'Every fault of the request at once.',
};
const CODE: JsonSchema = { type: 'string', description: 'A stable word for the kind of error; programs decide by it.' };
const DETAIL: JsonSchema = { type: 'string', description: 'What went wrong, for people.' };
const REQUEST_ID: JsonSchema = { type: 'string', description: 'Name it when you report a problem.' };

/** The body of every error, in the format the application chose. */
const PROBLEM: JsonSchema = {
  type: 'object',
  description: 'An error as RFC 9457 describes it. Some codes carry more members.',
  properties: {
    type: { type: 'string', format: 'uri', description: '`urn:kit:error:` and the code.' },
    title: { type: 'string' },
    status: { type: 'integer', minimum: 400, maximum: 599 },
    detail: DETAIL,
    code: CODE,
    request_id: REQUEST_ID,
    errors: FAULTS,
  },
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
};
const SHORT: JsonSchema = {
  type: 'object',
  description: 'An error. The id of the request is in the header X-Request-ID.',
  properties: { detail: DETAIL, code: CODE, errors: FAULTS },
  required: ['detail', 'code'],
};

export interface ErrorSchemas {
  readonly name: string;
  readonly mediaType: string;
  readonly schemas: Readonly<Record<string, JsonSchema>>;
}

export function errorSchemas(format: ErrorFormat): ErrorSchemas {
  return format === 'detail'
    ? { name: 'Error', mediaType: 'application/json', schemas: { Error: SHORT, FieldError: FIELD_ERROR } }
    : { name: 'Problem', mediaType: 'application/problem+json', schemas: { FieldError: FIELD_ERROR, Problem: PROBLEM } };
}

function exampleOf({ status, code, detail }: RaisedError, format: ErrorFormat): Record<string, unknown> {
  const faults = code === 'validation_error' ? { errors: [{ location: ['body', 'name'], code: 'required', message: 'Required.' }] } : {};
  if (format === 'detail') return { detail, code, ...faults };
  const title = code.charAt(0).toUpperCase() + code.slice(1).replaceAll('_', ' ');
  return { type: `urn:kit:error:${code}`, title, status, detail, code, request_id: '019b0c1e-8f00-7000-8000-000000000001', ...faults };
}

/** Errors that say when to try again. */
const RETRIED_LATER: ReadonlySet<string> = new Set(['throttled', 'request_in_progress']);
const CURRENT_TAG = { description: 'The current version of the row.', schema: { type: 'string' } };

/** One response per status, naming every code a program may meet under it. */
export function errorResponses(errors: readonly RaisedError[], format: ErrorFormat): Record<string, object> {
  const { name, mediaType } = errorSchemas(format);
  const responses: Record<string, object> = {};
  for (const [status, group] of Object.entries(Object.groupBy(errors, (error) => String(error.status)))) {
    const members = group ?? [];
    const codes = [...new Set(members.map((error) => error.code))];
    responses[status] = {
      description: [...new Set(members.map((error) => error.detail))].join(' '),
      headers: {
        'X-Request-ID': { $ref: '#/components/headers/RequestId' },
        ...(codes.some((code) => RETRIED_LATER.has(code)) ? { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } : {}),
        ...(codes.includes('precondition_failed') ? { ETag: CURRENT_TAG } : {}),
      },
      content: {
        [mediaType]: {
          schema: { allOf: [{ $ref: `#/components/schemas/${name}` }, { properties: { code: { enum: codes } } }] },
          examples: Object.fromEntries(members.map((error) => [error.code, { value: exampleOf(error, format) }])),
        },
      },
      'x-error-codes': codes,
    };
  }
  return responses;
}
