import type { Fault } from './fault.ts';
import { isRoute, type Route } from './route.ts';

/** Node's timers hold 32 bits: a longer wait would be over at once. */
export const TIMER_MS_MAX = 2_147_483_647;

/** What a value must be, as the end of a sentence; undefined when it is. */
export type Want = (value: unknown) => string | undefined;

type Members = Readonly<Record<string, unknown>>;

export const wholeNumber =
  (min: number, max = Number.MAX_SAFE_INTEGER): Want =>
  (value) => {
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return undefined;
    return max === Number.MAX_SAFE_INTEGER ? `a whole number of ${min} or more` : `a whole number from ${min} to ${max}`;
  };

export const milliseconds =
  (min: number): Want =>
  (value) =>
    typeof value === 'number' && value >= min && value <= TIMER_MS_MAX
      ? undefined
      : `a number of milliseconds from ${min} to ${TIMER_MS_MAX}`;

/** An object with these functions. */
export const objectWith =
  (what: string, ...functions: readonly string[]): Want =>
  (value) =>
    isMembers(value) && functions.every((name) => typeof value[name] === 'function') ? undefined : what;

export const aFunction: Want = (value) => (typeof value === 'function' ? undefined : 'a function');

/** `clientThrottle` where `clientThrottle("10/min")` is meant would never throttle anything. */
export const throttle: Want = (value) =>
  isNamed(value) && (value['phase'] === 'client' || value['phase'] === 'principal') && has(value, 'key') && has(value, 'rate')
    ? undefined
    : 'a throttle, such as clientThrottle("10/min")';

const hooks = ['appliesTo', 'onRequest', 'handle', 'onResponse', 'onFinish'];
export const middleware: Want = (value) =>
  isNamed(value) && hooks.every((hook) => value[hook] === undefined || has(value, hook))
    ? undefined
    : 'middleware, such as securityHeaders()';

const text: Want = (value) => (typeof value === 'string' ? undefined : 'a text');
const flag: Want = (value) => (typeof value === 'boolean' ? undefined : 'true or false');
export const errorMap = objectWith('an error map: errors().on(…)', 'translate', 'ruleFor');
const deprecation: Want = (value) =>
  typeof value === 'boolean' || (isMembers(value) && value['since'] !== undefined) ? undefined : 'true or { since: "2026-06-30" }';

const routeWants: Readonly<Record<string, Want>> = {
  status: wholeNumber(200, 599),
  errors: errorMap,
  summary: text,
  description: text,
  deprecated: deprecation,
  csrf: (value) => (value === false ? undefined : 'false, or leave it out'),
  bodyBytesMax: wholeNumber(1),
  operationId: (value) => (typeof value === 'string' && value !== '' ? undefined : 'a text'),
  timeoutMs: milliseconds(0),
  heartbeatMs: milliseconds(1),
  hidden: flag,
  metadata: objectWith('an object'),
};

const routeLists: Readonly<Record<string, Want>> = {
  throttles: throttle,
  auth: text,
  tags: text,
  raises: (value) => (typeof value === 'function' ? undefined : 'an error definition or an error class'),
};

/** What a route was given that cannot be used. Found at the first request it would be a 500, or silently nothing. */
export function routeValueFaults(where: string, { options, handler }: Route): Fault[] {
  const faults: Fault[] = [];
  if (typeof handler !== 'function')
    faults.push({ id: 'E008', message: `${where}: has no handler.`, hint: 'It is the last argument: route.get(path, options, handler).' });
  if (!isMembers(options)) {
    faults.push({
      id: 'E008',
      message: `${where}: has no options.`,
      hint: 'Say at least who may: route.get(path, { permission: … }, handler).',
    });
    return faults;
  }
  return [...faults, ...valueFaults(where, options, routeWants, routeLists)];
}

/** The same for what a controller or a version mount says for all its routes. */
export function groupValueFaults(where: string, group: object): Fault[] {
  const { tags, throttles, errors, deprecated, description } = group as Members;
  return valueFaults(where, { tags, throttles, errors, deprecated, description }, routeWants, routeLists);
}

export function valueFaults(
  where: string,
  given: Members,
  wants: Readonly<Record<string, Want>>,
  lists: Readonly<Record<string, Want>> = {},
): Fault[] {
  const faults: Fault[] = [];
  for (const [name, want] of Object.entries(wants)) {
    if (given[name] !== undefined) faults.push(...faultOf(where, name, given[name], want));
  }
  for (const [name, want] of Object.entries(lists)) usableItems(where, name, given[name], want, faults);
  return faults;
}

/** The items that can be used; what cannot, or a value that is no list, becomes a fault. */
export function usableItems(where: string, name: string, given: unknown, want: Want, faults: Fault[]): readonly unknown[] {
  if (given === undefined) return [];
  if (!Array.isArray(given)) {
    faults.push(...faultOf(where, name, given, () => 'a list: [ … ]'));
    return [];
  }
  return given.filter((item: unknown, index) => {
    const found = faultOf(where, `${name}[${index}]`, item, want);
    faults.push(...found);
    return found.length === 0;
  });
}

function faultOf(where: string, name: string, value: unknown, want: Want): Fault[] {
  const wanted = want(value);
  if (wanted === undefined) return [];
  const message = `${where}: ${name} is ${spelled(value)}; use ${wanted}.`;
  return [
    typeof value === 'function' && value.name !== ''
      ? { id: 'E011', message, hint: `Call it: ${value.name}(…).` }
      : { id: 'E011', message },
  ];
}

function spelled(value: unknown): string {
  if (typeof value === 'function') return `the function ${value.name || 'itself'}`;
  if (Array.isArray(value)) return 'a list';
  if (isRoute(value)) return 'a route';
  if (typeof value === 'object' && value !== null) return 'an object of another kind';
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value);
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNamed(value: unknown): value is Members {
  return isMembers(value) && typeof value['name'] === 'string' && value['name'] !== '';
}

function has(value: Members, name: string): boolean {
  return typeof value[name] === 'function';
}
