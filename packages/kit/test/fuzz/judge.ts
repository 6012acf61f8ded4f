import { ERRORS_ANYWHERE } from '../../src/openapi/errors-of-route.ts';
import { isExpected } from './outcomes.ts';
import type { FuzzRequest, FuzzTarget } from './request-plan.ts';

export interface FuzzAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Refusals of the server itself, possible at every address: `default` of the document, and addresses that are not in it. */
const EVERYWHERE = new Set(['not_found', 'method_not_allowed', ...ERRORS_ANYWHERE.map(({ code }) => code)]);

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
  const isUnexpected = (outcome: string) => request.isValid && !isExpected(target.operationId, request.headers['x-test-user'], outcome);
  if (status < 400) {
    if (isUnexpected('accepted')) return 'the request was accepted';
    return status === target.success ? undefined : `the document promises ${target.success}`;
  }
  if (answer.contentType !== 'application/problem+json; charset=utf-8') return `the refusal is ${answer.contentType}`;
  const refusal = JSON.parse(answer.body) as Refusal;
  if (typeof refusal.code !== 'string' || typeof refusal.detail !== 'string' || typeof refusal.request_id !== 'string')
    return 'the refusal is incomplete';
  if (refusal.status !== status) return 'the body names another status';
  const isDocumented = target.codes.get(status)?.includes(refusal.code) === true || EVERYWHERE.has(refusal.code);
  if (!isDocumented) return `${refusal.code} is not documented for ${status}`;
  if (refusal.code === 'validation_error' && !hasLocations(refusal)) return 'a fault has no location';
  return isUnexpected(refusal.code) ? `a valid request was refused as ${refusal.code}` : undefined;
}

function hasLocations({ errors = [] }: Refusal): boolean {
  return (
    errors.length > 0 &&
    errors.every(({ location, code, message }) => PARTS.has(location?.[0]) && typeof code === 'string' && typeof message === 'string')
  );
}
