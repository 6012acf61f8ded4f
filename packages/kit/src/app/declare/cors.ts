import cors from '@fastify/cors';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { isOrigin } from '../../http/declare/origin.ts';
import { objectOf } from '../../options/read-options.ts';
import { flag, headerName, isMembers, listOf, required, rule, type ValueRule, wholeNumber } from '../../options/value-rule.ts';

/** Which pages of other origins may call the API from a browser. */
export interface CorsOptions {
  /** Origins such as `https://app.example.com`, or `'*'` for every page, without credentials. */
  readonly origins: readonly string[] | '*';
  /** Lets pages send cookies and read the responses. Needs named origins. */
  readonly credentials?: boolean;
  /** Request headers that a page may send. Default: those it asks for. */
  readonly allowedHeaders?: readonly string[];
  /** Response headers that a page may read. Default: those of the toolkit. */
  readonly exposedHeaders?: readonly string[];
  /** How long a browser may remember the response to a preflight request. Default: 600. */
  readonly maxAgeSeconds?: number;
}

const METHODS = ['GET', 'HEAD', 'QUERY', 'POST', 'PUT', 'PATCH', 'DELETE'];
const EXPOSED_HEADERS = [
  'Deprecation',
  'ETag',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Sunset',
  'X-Request-ID',
  'X-Total-Count',
];
/** Browsers cap it: Chromium at two hours, Firefox at a day. */
const MAX_AGE_SECONDS = 600;

const origins = listOf(rule('an origin such as "https://app.example.com", without a path', isOrigin), { min: 1 });

const shape = objectOf<CorsOptions>({
  origins: required((value, place, name) => (value === '*' ? [] : origins(value, place, name))),
  credentials: flag,
  allowedHeaders: listOf(headerName),
  exposedHeaders: listOf(headerName),
  maxAgeSeconds: wholeNumber(0, 86_400),
});

export const corsRule: ValueRule = (value, place, name) => {
  const faults = shape(value, place, name);
  if (!isMembers(value) || value['origins'] !== '*' || value['credentials'] !== true) return faults;
  return [
    ...faults,
    {
      id: 'E011',
      message: `${place}: ${name}.credentials needs named origins: with "*" any page could act for its visitor.`,
      hint: 'List the origins: origins: ["https://app.example.com"].',
    },
  ];
};

/** Adds the headers to every response of this context, errors and unknown addresses included, and answers preflight requests. */
export async function serveCors(fastify: FastifyInstance, options: CorsOptions): Promise<void> {
  const { credentials = false, allowedHeaders, exposedHeaders = EXPOSED_HEADERS, maxAgeSeconds = MAX_AGE_SECONDS } = options;
  const named = options.origins === '*' ? null : new Set(options.origins);
  const allowed = {
    credentials,
    methods: METHODS,
    exposedHeaders: [...exposedHeaders],
    maxAge: maxAgeSeconds,
    ...(allowedHeaders === undefined ? {} : { allowedHeaders: [...allowedHeaders] }),
  };
  await fastify.register(cors, {
    delegator: (request: FastifyRequest, decide: (error: Error | null, options: object) => void) => {
      const { origin } = request.headers;
      if (origin === undefined || (named !== null && !named.has(origin))) decide(null, { origin: false });
      // Other OPTIONS requests are answered as always: with Allow.
      else decide(null, { ...allowed, origin: named === null ? '*' : origin, preflight: isPreflight(request) });
    },
  });
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers['access-control-request-method'] !== undefined;
}
