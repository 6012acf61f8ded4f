import type { ErrorFormat } from '../errors/render.ts';
import { coreErrors } from '../errors/core-errors.ts';
import type { RaisedError } from '../http/exchange/compiled-route.ts';
import { nodeHttp } from '../http/exchange/node-http.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { ERRORS_ANYWHERE } from './errors-of-route.ts';
import { pascalCase } from './schema-names.ts';

const FIELD_ERROR: JsonSchema = {
  type: 'object',
  description: 'One fault of the request.',
  properties: {
    location: {
      type: 'array',
      items: { type: ['string', 'integer'] },
      description: 'Where it is, starting with `body`, `query`, `params` or `headers`.',
    },
    code: { type: 'string', description: 'Stable code of the field error.' },
    message: { type: 'string', description: 'What is wrong, for people.' },
  },
  required: ['location', 'code', 'message'],
};

const FAULTS: JsonSchema = {
  type: 'array',
  items: { $ref: '#/components/schemas/FieldError' },
  description: 'All errors of the request.',
};
const CODE: JsonSchema = { type: 'string', description: 'Stable error code; use it in programs.' };
const DETAIL: JsonSchema = { type: 'string', description: 'What went wrong, for people.' };
const REQUEST_ID: JsonSchema = { type: 'string', description: 'Request ID. Include it when you contact support.' };

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
  required: ['status', 'detail', 'code', 'request_id'],
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

/** The one with a list of faults, as no other has it. */
export function errorExample(format: ErrorFormat): Record<string, unknown> {
  const { status, code, detail } = coreErrors.validation_error;
  const errors = [{ location: ['body', 'name'], code: 'required', message: 'Required.' }];
  return format === 'detail' ? { detail, code, errors } : { status, code, detail, request_id: 'f1', errors };
}

/** Errors that say when to try again. */
const RETRIED_LATER: ReadonlySet<string> = new Set([
  'throttled',
  'request_quota_exceeded',
  'request_in_progress',
  'too_many_exports',
  'too_many_cursors',
]);
const CURRENT_TAG = { description: 'The current version of the row.', schema: { type: 'string' } };

/** Sent with every response of a limited operation; documented once. */
const RATE_LIMITS = {
  RateLimit: { $ref: '#/components/headers/RateLimit' },
  'RateLimit-Policy': { $ref: '#/components/headers/RateLimitPolicy' },
};

export interface ErrorResponse {
  readonly description: string;
  readonly headers?: object;
  readonly [member: string]: unknown;
}

/** Members of a problem beside those of all problems, and the component that has them. */
interface Members {
  readonly name: string;
  readonly schema: JsonSchema;
}
export type MembersByCode = ReadonlyMap<string, Members>;

/** The response of one status, with every code that a program may meet under it. Members are referred to where `isShared`, else listed in place. */
export function errorResponse(
  errors: readonly RaisedError[],
  format: ErrorFormat,
  members: MembersByCode,
  isShared: (name: string) => boolean,
): ErrorResponse {
  const { name, mediaType } = errorSchemas(format);
  const codes = [...new Set(errors.map((error) => error.code))];
  const headers = {
    // In the other format it is part of the body.
    ...(format === 'detail' ? { 'X-Request-ID': { $ref: '#/components/headers/RequestId' } } : {}),
    ...(codes.some((code) => RETRIED_LATER.has(code)) ? { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } : {}),
    ...(codes.includes('precondition_failed') ? { ETag: CURRENT_TAG } : {}),
    ...(codes.includes('throttled') ? RATE_LIMITS : {}),
  };
  const shared = new Set(codes.flatMap((code) => members.get(code)?.name ?? []).filter(isShared));
  const own = errors.filter(({ code }) => !shared.has(members.get(code)?.name ?? ''));
  return {
    // The sentence of each code is in `x-errors` of the schema.
    description: errors.length === 1 ? errors[0]!.detail : `${nodeHttp.STATUS_CODES[errors[0]?.status ?? 500] ?? 'Error'}.`,
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: {
      [mediaType]: {
        schema: {
          allOf: [
            { $ref: `#/components/schemas/${name}` },
            ...[...shared].map((each) => ({ $ref: `#/components/schemas/${each}` })),
            {
              properties: {
                code: { enum: withCodesAnywhere(codes, errors[0]?.status) },
                ...(format === 'detail' ? {} : mergedMembers(own)),
              },
            },
          ],
        },
      },
    },
  };
}

/** `default` is for the statuses that an operation does not list: under those it lists, a code that any request can get must be allowed too. */
function withCodesAnywhere(codes: readonly string[], status: number | undefined): readonly string[] {
  const anywhere = ERRORS_ANYWHERE.filter((error) => error.status === status).map(({ code }) => code);
  return Array.from(new Set([...codes, ...anywhere]));
}

/**
 * The short format has no further members. Two modules may have the same code: their members are together. Codes with the same members share
 * a component, named after the first of them.
 */
export function membersByCode(errors: readonly RaisedError[], format: ErrorFormat): MembersByCode {
  const found = format === 'detail' ? [] : errors.filter(({ members = {} }) => Object.keys(members).length > 0);
  const byCode = [...Map.groupBy(found, ({ code }) => code)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, group]) => [code, mergedMembers(group.toSorted((a, b) => (a.detail < b.detail ? -1 : 1)))] as const);
  return new Map(
    [...Map.groupBy(byCode, ([, properties]) => JSON.stringify(properties)).values()].flatMap((same) => {
      const [[first, properties]] = same as [(typeof same)[number]];
      const members = { name: `${pascalCase(first)}Members`, schema: { type: 'object', properties } };
      return same.map(([code]) => [code, members] as const);
    }),
  );
}

function mergedMembers(errors: readonly RaisedError[]): Record<string, JsonSchema> {
  const merged: Record<string, JsonSchema> = {};
  for (const [member, schemas] of Map.groupBy(
    errors.flatMap(({ members = {} }) => Object.entries(members)),
    ([name]) => name,
  )) {
    const different = [...new Map(schemas.map(([, schema]) => [JSON.stringify(schema), schema])).values()];
    merged[member] = different.length === 1 ? different[0]! : { anyOf: different };
  }
  return merged;
}
