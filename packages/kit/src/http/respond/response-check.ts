import { jsonChecker } from '../../db/declare/json-checker.ts';
import type { SchemaIssue } from '../../db/values/standard-schema.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { ResponseChecks } from '../declare/response-checks.ts';
import type { JsonSchema } from '../declare/schema.ts';
import { stepsOf } from '../../db/values/standard-schema.ts';

/** Called with the JSON text of a response before it is sent. */
export type ResponseCheck = (exchange: Exchange, text: string) => void;

/**
 * Where faults are only logged, the first responses of a route are all checked, and later as many as this many bytes per response allow.
 * Parsing and checking costs 2.7 µs for a row of 156 bytes and 20 µs for 1,900 bytes (measured on 2 busy cores), a tenth of such a request or
 * more; with 8 bytes per response it stays below a quarter of a microsecond. A fault is one of the code: once a route showed one, all its responses are checked.
 */
const CHECKED_AT_FIRST = 100;
const CHECKED_PER_RESPONSE = 8;
/** A fault is one of the code: its responses all have it. The log says so once in this time per route, with how often. */
const LOG_INTERVAL_MS = 60_000;
const ISSUES_MAX = 20;

export function compileResponseCheck(schema: JsonSchema, checks: ResponseChecks): ResponseCheck | undefined {
  if (checks === 'off') return undefined;
  const issuesOf = lazyChecker(schema);
  return checks === 'error' ? refusing(issuesOf) : logging(issuesOf);
}

type IssuesOf = (text: string) => readonly SchemaIssue[];

function refusing(issuesOf: IssuesOf): ResponseCheck {
  return (exchange, text) => {
    const issues = issuesOf(text);
    if (issues.length === 0) return;
    exchange.hasInvalidResponse = true;
    const errors = issues.slice(0, ISSUES_MAX).map(fieldError);
    const places = errors.map(({ location, message }) => `${location.join('.')} ${message}`).join('; ');
    const operation = exchange.route?.operationId;
    throw coreErrors.invalid_response({ detail: `The response of ${operation} does not match its schema: ${places}.`, errors });
  };
}

function logging(issuesOf: IssuesOf): ResponseCheck {
  let unchecked = CHECKED_AT_FIRST;
  let credit = 0;
  let isFaulty = false;
  let unlogged = 0;
  let quietUntil = 0;
  return (exchange, text) => {
    if (unchecked > 0) unchecked -= 1;
    else if (!isFaulty) {
      credit += CHECKED_PER_RESPONSE;
      if (credit < text.length) return;
      credit = 0;
    }
    const issues = issuesOf(text);
    if (issues.length === 0) return;
    isFaulty = true;
    exchange.hasInvalidResponse = true;
    unlogged += 1;
    const now = exchange.host.clock.now().getTime();
    if (now < quietUntil) return;
    quietUntil = now + LOG_INTERVAL_MS;
    const faults = issues.slice(0, ISSUES_MAX).map(fieldError);
    exchange.log.error({ operation: exchange.route?.operationId, faults, times: unlogged }, 'a response does not match its schema');
    unlogged = 0;
  };
}

/** Compiled with the first response: an app has more routes than a test uses. */
function lazyChecker(schema: JsonSchema): IssuesOf {
  let check: ReturnType<typeof jsonChecker> | undefined;
  return (text) => {
    check ??= jsonChecker(schema);
    return check(JSON.parse(text));
  };
}

function fieldError(issue: SchemaIssue): FieldError {
  const { code = 'invalid', message } = issue;
  return { location: ['response', ...stepsOf(issue).map(String)], code, message };
}
