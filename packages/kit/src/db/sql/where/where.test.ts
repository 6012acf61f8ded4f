import { describe, expect, test } from 'vitest';
import { t } from '../../declare/column.ts';
import { model } from '../../declare/model.ts';
import { compileWhere } from './compile-where.ts';
import { operatorsOf } from './operators.ts';
import { whereSql } from './where-sql.ts';
import type { Where, WhereRelations } from './where.ts';

const users = model('users', { id: t.uuidv7().pk(), name: t.text(20) });
const orders = model('orders', {
  id: t.uuidv7().pk(),
  owner_id: t.ref(() => users),
  status: t.enum(['open', 'paid']),
  item: t.text(20).nullable(),
  quantity: t.int(),
  total: t.decimal(12, 2),
  public: t.bool(),
  raw: t.bytes().nullable(),
  data: t.json().nullable(),
  tags: t.array(t.text()).nullable(),
  at: t.timestamp(),
});
type Columns = typeof orders.columns;
type Related = { owner: typeof users.columns };
const OWNER = '018f4a52-0000-7000-8000-00000000000a';

const relations: WhereRelations = (name, { name: table }) =>
  table === 'orders' && name === 'owner' ? { kind: 'one', model: users, column: 'owner_id' } : undefined;

/** The message for the log; the error itself says nothing to a caller. */
function refusal(where: unknown): unknown {
  try {
    return compileWhere(orders, where as Where<Columns>, relations);
  } catch (error) {
    return error;
  }
}

describe('types', () => {
  const of = (where: Where<Columns, Related>): Where<Columns, Related> => where;

  test('columns, operators by kind, logic and relations are checked by the compiler', () => {
    of({ status: 'paid', total: { gte: '10.00' }, or: [{ quantity: 1 }, { item: { contains: 'x' } }], not: { item: null } });
    of({ owner: { is: { name: { starts: 'a' } } }, data: null, tags: { isnull: false }, raw: new Uint8Array(), at: { lt: new Date(0) } });
    of({ and: [whereSql('this.total > 1'), { status: { in: ['open'] } }] });
    // @ts-expect-error not one of the values
    of({ status: 'shipped' });
    // @ts-expect-error no text operators on numbers
    of({ quantity: { contains: '1' } });
    // @ts-expect-error nor on enums
    of({ status: { contains: 'pa' } });
    // @ts-expect-error no order on booleans
    of({ public: { gt: true } });
    // @ts-expect-error no equality on JSON
    of({ data: { eq: {} } });
    // @ts-expect-error misspelt, inside a list
    of({ or: [{ stauts: 'paid' }] });
    // @ts-expect-error undefined is not a condition
    of({ status: undefined });
    // @ts-expect-error a relation has some, none or is
    of({ owner: { name: 'x' } });
    // @ts-expect-error misspelt in the related model
    of({ owner: { is: { nmae: 'x' } } });
    // @ts-expect-error only whereSql makes SQL
    of({ text: '1 = 1', values: [] });
    expect(operatorsOf({ kind: 'bool' })).toEqual(['eq', 'ne', 'in', 'nin', 'isnull']);
  });
});

describe('what is refused', () => {
  test.each([
    [
      'an unknown name, with a hint',
      { stauts: 'open' },
      'where.stauts (table "orders") refers to an unknown column or relation of "orders" (did you mean "status"?)',
    ],
    ['a name inside a list', { or: [{ status: 'open' }, { not: { x: 1 } }] }, 'where.or[1].not.x '],
    ['a prototype name', JSON.parse('{ "__proto__": { "eq": 1 } }'), 'where.__proto__ '],
    ['another prototype name', { constructor: 1 }, 'where.constructor '],
    ['a prototype name as operator', { status: JSON.parse('{ "__proto__": 1 }') as unknown }, 'where.status.__proto__ '],
    ['an inherited member as operator', { status: { toString: 'open' } }, 'is not an operator of enum columns'],
    ['undefined for a column', { owner_id: undefined }, 'where.owner_id (table "orders") is undefined.'],
    ['undefined for an operator', { owner_id: { eq: undefined } }, 'where.owner_id.eq (table "orders") is undefined.'],
    ['undefined in a list', { owner_id: { in: [undefined] } }, 'where.owner_id.in[0] (table "orders") is undefined.'],
    // oxlint-disable-next-line no-sparse-arrays -- that is the case
    ['a hole in a list', { or: [,] }, 'where.or[0] (table "orders") must be an object of conditions.'],
    ['undefined instead of a tree', undefined, 'where (table "orders") must be an object of conditions.'],
    ['undefined under not', { not: undefined }, 'where.not (table "orders") must be'],
    ['no operator at all', { owner_id: {} }, 'where.owner_id (table "orders") has no operator.'],
    ['null in a list', { owner_id: { in: [null] } }, 'cannot be null: ask with isnull'],
    ['order with null', { quantity: { gt: null } }, 'cannot be null'],
    ['a value of another kind', { quantity: '1' }, 'cannot be compared with "quantity": quantity must be a 32-bit integer.'],
    ['a value beyond the column', { total: { gt: '1.005' } }, 'cannot be compared with "total"'],
    ['an operator of another kind', { raw: { gt: new Uint8Array() } }, 'is not an operator of bytes columns (eq, ne, in, nin, isnull)'],
    ['text operators on an enum', { status: { contains: 'o' } }, 'is not an operator of enum columns'],
    ['equality on JSON', { data: { eq: 1 } }, 'is not an operator of json columns (isnull)'],
    ['a list as a value', { status: ['open'] }, 'cannot be compared'],
    ['half a surrogate pair', { item: { contains: '\ud800' } }, 'must be a string'],
    ['isnull with another value', { item: { isnull: 'yes' } }, 'must be true or false'],
    ['a list where a tree belongs', [{ status: 'open' }], 'must be an object of conditions'],
    ['an object that is not plain', new Map(), 'must be an object of conditions'],
    ['and without a list', { and: { status: 'open' } }, 'must be a list of conditions'],
    ['a relation without a quantifier', { owner: {} }, 'must have one member, is.'],
    ['a quantifier of the other kind', { owner: { some: {} } }, 'must have one member, is.'],
    ['an unknown name in a relation', { owner: { is: { nmae: 'x' } } }, 'where.owner.is.nmae (table "users") refers to an unknown column'],
    ['SQL with too few values', whereSql('this.total > $2', [1]), 'has a placeholder $2 and 1 values'],
    [
      'SQL with an unknown column',
      { or: [whereSql('this.totl > 1')] },
      'refers to the unknown column "this.totl" of "orders" (did you mean "total"?)',
    ],
    ['SQL with an undefined value', whereSql('this.total > $1', [undefined]), 'has an undefined value'],
    ['JSON that looks like SQL', { text: '1 = 1', values: [] }, 'where.text (table "orders") refers to an unknown column'],
  ])('%s', (_name, where, message) => {
    expect(refusal(where)).toMatchObject({
      code: 'invalid_where',
      status: 500,
      detail: 'An internal error occurred.',
      message: expect.stringContaining(message),
    });
  });

  test('policies of relations that lead to each other end', () => {
    const endless: WhereRelations = (name) =>
      name === 'self' ? { kind: 'one', model: orders, column: 'id', where: { self: { is: {} } } as never } : undefined;
    expect(() => compileWhere(orders, { self: { is: {} } } as never, endless)).toThrow('nested deeper than 32 levels');
  });
});

describe('compiled', () => {
  test('a tree becomes one expression whose placeholders continue those of the statement', () => {
    const where = compileWhere(orders, {
      status: { in: ['open', 'paid'] },
      owner_id: OWNER,
      or: [{ quantity: { gt: 1 } }, { item: null }],
    });
    const parameters: unknown[] = ['before'];
    expect(where.append('postgres', 'o', parameters)).toBe(
      '((o."quantity" > $2 or o."item" is null) and o."owner_id" = $3 and o."status" in ($4, $5))',
    );
    expect(parameters).toEqual(['before', 1, OWNER, 'open', 'paid']);
    expect(where.shape).toBe('all(any(quantity.gt,item.null),owner_id.eq,status.in2)');
  });

  test('the order of the members does not change the text', () => {
    const a = compileWhere(orders, { quantity: { gt: 1, lt: 5 }, status: 'open' });
    const b = compileWhere(orders, { status: 'paid', quantity: { lt: 7, gt: 2 } });
    expect(a.shape).toBe(b.shape);
    expect(a.text('sqlite', 'o', 1)).toBe(b.text('sqlite', 'o', 1));
  });

  test('what is always or never true is known without a statement', () => {
    expect(compileWhere(orders, {}).constant).toBe(true);
    expect(compileWhere(orders, true).constant).toBe(true);
    expect(compileWhere(orders, { and: [] }).constant).toBe(true);
    expect(compileWhere(orders, { or: [] }).constant).toBe(false);
    expect(compileWhere(orders, { not: {} }).constant).toBe(false);
    expect(compileWhere(orders, { status: 'open', owner_id: { in: [] } }).constant).toBe(false);
    expect(compileWhere(orders, { status: { nin: [] } }).constant).toBe(true);
    expect(compileWhere(orders, { status: 'open' }).constant).toBeUndefined();
  });

  test('a row without a column that is asked for is refused, not taken for NULL', () => {
    const where = compileWhere(orders, { status: 'open' });
    expect(() => where.matches({ id: OWNER })).toThrow('no column "status"');
    expect(where.matches({ status: 'open' })).toBe(true);
    expect(() => compileWhere(orders, whereSql('1 = 1')).matches({})).toThrow('cannot be evaluated');
  });
});
