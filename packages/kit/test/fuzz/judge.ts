import { ERRORS_ANYWHERE } from '../../src/openapi/errors-of-route.ts';
import type { FuzzRequest, FuzzTarget } from './request-plan.ts';

export interface FuzzAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Refusals of the server itself, possible at every address: `default` of the document, and addresses that are not in it. */
const EVERYWHERE = new Set(['not_found', 'method_not_allowed', ...ERRORS_ANYWHERE.map(({ code }) => code)]);

/** Who asks, what is stored, how the application is set up and how often was asked may refuse a request that satisfies the document. */
const BY_STATE = new Set([401, 403, 404, 409, 410, 429]);
/** Codes of other statuses that depend on what is stored. */
const CODES_BY_STATE = new Set(['invalid_code', 'invalid_link']);

interface Refusal {
  readonly code?: unknown;
  readonly status?: unknown;
  readonly detail?: unknown;
  readonly request_id?: unknown;
  readonly errors?: readonly { readonly location?: readonly unknown[]; readonly code?: unknown; readonly message?: unknown }[];
}

const PARTS = new Set<unknown>(['body', 'query', 'params', 'headers']);

/** What is wrong with an answer, or nothing. */
export function faultOf(target: FuzzTarget, request: FuzzRequest, answer: FuzzAnswer): string | undefined {
  const { status } = answer;
  if (status >= 500) return 'the server failed';
  if (status < 400) return status === target.success ? undefined : `the document promises ${target.success}`;
  if (answer.contentType !== 'application/problem+json; charset=utf-8') return `the refusal is ${answer.contentType}`;
  const refusal = JSON.parse(answer.body) as Refusal;
  if (typeof refusal.code !== 'string' || typeof refusal.detail !== 'string' || typeof refusal.request_id !== 'string')
    return 'the refusal is incomplete';
  if (refusal.status !== status) return 'the body names another status';
  const isDocumented = target.codes.get(status)?.includes(refusal.code) === true || EVERYWHERE.has(refusal.code);
  if (!isDocumented) return `${refusal.code} is not documented for ${status}`;
  if (refusal.code === 'validation_error' && !hasLocations(refusal)) return 'a fault has no location';
  if (request.isValid && !BY_STATE.has(status) && !CODES_BY_STATE.has(refusal.code))
    return `a valid request was refused as ${refusal.code}`;
  return undefined;
}

function hasLocations({ errors = [] }: Refusal): boolean {
  return (
    errors.length > 0 &&
    errors.every(({ location, code, message }) => PARTS.has(location?.[0]) && typeof code === 'string' && typeof message === 'string')
  );
}
