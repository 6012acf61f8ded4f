import type { JsonSchema } from '../../http/declare/schema.ts';
import type { QueryValues } from '../../http/input/query-string.ts';
import type { ControllerLimits } from '../declare/limits.ts';
import type { PageOptions } from '../options/page-options.ts';

/** Which part of a list is wanted. */
export interface PageStretch {
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string | undefined;
}

/** Reports a fault of a parameter. */
type Refuse = (location: readonly string[], code: string, message: string) => void;

/** The greatest number of a page that a request may name. */
export const PAGE_NUMBER_MAX = 2_147_483_647;

const NAMES: Readonly<Record<PageOptions['style'], readonly string[]>> = {
  cursor: ['limit', 'cursor'],
  offset: ['limit', 'offset'],
  page: ['page', 'page_size'],
};

/** Parameters of pages, of every style. */
export const allPagingNames: readonly string[] = [...new Set(Object.values(NAMES).flat())];

/** The parameters that select a page. */
export function pagingNames({ style }: PageOptions): readonly string[] {
  return NAMES[style];
}

/** The parameter with the number of rows. */
export function sizeName({ style }: PageOptions): 'limit' | 'page_size' {
  return style === 'page' ? 'page_size' : 'limit';
}

/** The number of rows of a page. What is more than a numbered page can have is capped. */
export function sizeSchema({ style, default: size, max }: PageOptions): JsonSchema {
  const description = style === 'page' ? `Rows per page. Values above ${max} are treated as ${max}.` : 'Rows per page.';
  return { type: 'integer', minimum: 1, ...(style === 'page' ? {} : { maximum: max }), default: size, description };
}

export function readPage(
  given: QueryValues,
  { style, default: size, max }: PageOptions,
  limits: ControllerLimits,
  refuse: Refuse,
): PageStretch {
  if (style === 'page') {
    const limit = Math.min(max, readNumber(given, 'page_size', { min: 1, otherwise: size }, refuse));
    const page = readNumber(given, 'page', { min: 1, max: PAGE_NUMBER_MAX, otherwise: 1 }, refuse);
    return { limit, offset: (page - 1) * limit, cursor: undefined };
  }
  const limit = readNumber(given, 'limit', { min: 1, max, otherwise: size }, refuse);
  if (style === 'offset') {
    const hint = ' Use a filter, or a list with cursors, to go further.';
    return { limit, offset: readNumber(given, 'offset', { min: 0, max: limits.offset, otherwise: 0, hint }, refuse), cursor: undefined };
  }
  const { cursor } = given;
  if (cursor !== undefined && typeof cursor !== 'string') refuse(['query', 'cursor'], 'duplicate', 'Give this parameter once.');
  return { limit, offset: 0, cursor: typeof cursor === 'string' ? cursorOf(cursor) : undefined };
}

/** `next` as it is, `?cursor=…&limit=20`, is the cursor in it: clients of lists whose `next` is a bare cursor send it so. */
function cursorOf(given: string): string {
  return given.startsWith('?') ? (new URLSearchParams(given.slice(1)).get('cursor') ?? given) : given;
}

interface NumberRange {
  readonly min: number;
  /** Without it any number is accepted: it is capped. */
  readonly max?: number;
  readonly otherwise: number;
  readonly hint?: string;
}

function readNumber(given: QueryValues, name: string, { min, max = Infinity, otherwise, hint = '' }: NumberRange, refuse: Refuse): number {
  const text = given[name];
  if (text === undefined) return otherwise;
  const value = typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  refuse(
    ['query', name],
    'invalid',
    max === Infinity ? `Enter an integer of ${min} or more.` : `Enter an integer between ${min} and ${max}.${hint}`,
  );
  return otherwise;
}
