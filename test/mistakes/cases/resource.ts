// Mistakes in resources. `//: what is wrong | the text that the compiler must mark`.
import { createApp, isOwner, isStaff } from 'kit';
import { many, one, resource, visibleTo, writableBy } from 'kit/crud';
import { z } from 'zod';
import { customers, orderItems, orders, relations } from './shop.ts';

//: a misspelt option | ownr
export const r1 = () => resource(orders, { ownr: 'owner_id' });
//: a misspelt owner column | owner
export const r2 = () => resource(orders, { owner: 'ownerid' });
//: a misspelt tenant column | tenant
export const r3 = () => resource(orders, { tenant: 'orgid' });
//: an owner rule without a permission | unless
export const r4 = () => resource(orders, { owner: { column: 'owner_id', unless: true } });
//: a misspelt column in the rows of a caller | rows
export const r5 = () => resource(orders, { rows: ({ user }) => ({ ownr_id: user.id }) });
//: a misspelt column inside `or` | rows
export const r6 = () => resource(orders, { rows: ({ user }) => ({ or: [{ owner_id: user.id }, { statu: 'open' }] }) });
//: a misspelt column inside `not` | rows
export const r7 = () => resource(orders, { rows: () => ({ not: { statu: 'open' } }) });
//: a misspelt column in one of two answers | rows
export const r8 = () => resource(orders, { rows: ({ user }) => (user.is_staff ? true : { ownr_id: user.id }) });
//: a misspelt column in an asynchronous rule | rows
export const r9 = () => resource(orders, { rows: async ({ user }) => ({ ownr_id: user.id }) });
//: `some` of a relation to one row | rows
export const r10 = () => resource(orders, { relations, rows: () => ({ customer: { some: { name: 'a' } } }) });
//: a misspelt column behind a relation | rows
export const r11 = () => resource(orders, { relations, rows: () => ({ customer: { is: { nam: 'a' } } }) });
//: an unknown state in the rows of a caller | rows
export const r12 = () => resource(orders, { rows: () => ({ status: 'opn' }) });
//: a member that the caller does not have | usr
export const r13 = () => resource(orders, { rows: ({ usr }) => true });
//: a misspelt column in `anonymous` | statu
export const r14 = () => resource(orders, { owner: 'owner_id', anonymous: { statu: 'open' } });
//: `unscoped` that is false | unscoped
export const r15 = () => resource(orders, { unscoped: false });
//: a misspelt version column | version
export const r16 = () => resource(orders, { unscoped: true, version: 'versoin' });
//: a cascade over a relation to one row | 'customer'
export const r17 = () => resource(orders, { unscoped: true, relations, softDelete: { cascade: ['customer'] } });
//: a relation to a value, not to a function | customers
export const r18 = () => one(customers, 'customer_id');
//: a misspelt column of a to-many relation | 'orderid'
export const r19 = () => many(() => orderItems, 'orderid');
//: a misspelt order of a to-many relation | 'skuu'
export const r20 = () => many(() => orderItems, 'order_id', { order: ['skuu'] });
//: a misspelt condition of a to-many relation | skuu
export const r21 = () => many(() => orderItems, 'order_id', { where: { skuu: 'a' } });
//: a misspelt column of a to-one relation | customer
export const r22 = () => resource(orders, { unscoped: true, relations: { customer: one(() => customers, 'custmer_id') } });
//: a misspelt input column | 'totl'
export const r23 = () => resource(orders, { unscoped: true, input: ['totl'] });
//: a misspelt hidden column | 'nte'
export const r24 = () => resource(orders, { unscoped: true, hidden: ['nte'] });
//: a misspelt field | totl
export const r25 = () => resource(orders, { unscoped: true, fields: { totl: visibleTo(isStaff) } });
//: a bare permission as a rule of a field | total
export const r26 = () => resource(orders, { unscoped: true, fields: { total: isStaff } });
//: a permission factory that is not called | isOwner
export const r27 = () => resource(orders, { unscoped: true, fields: { note: visibleTo(isOwner) } });
//: a misspelt option of visibleTo() | hide
export const r28 = () => visibleTo(isStaff, { hide: 'null' });
//: writableBy() of a column name | 'total'
export const r29 = () => writableBy('total');
//: a computed field that requires a misspelt column | 'due_t'
export const r30 = () => resource(orders, { unscoped: true, computed: { late: { requires: ['due_t'], response: z.boolean(), value: () => true } } });
//: a computed field that requires a misspelt path | 'customer.term'
export const r31 = () =>
  resource(orders, { unscoped: true, relations, computed: { late: { requires: ['customer.term'], response: z.boolean(), value: () => true } } });
//: a computed field that uses a column it does not require | note
export const r32 = () =>
  resource(orders, { unscoped: true, computed: { late: { requires: ['due_at'], response: z.boolean(), value: (row) => row.note === '' } } });
//: a computed field whose value does not fit its schema | value
export const r33 = () => resource(orders, { unscoped: true, computed: { late: { requires: ['due_at'], response: z.boolean(), value: () => 'yes' } } });
//: a related row that may be null | row.customer
export const r34 = () =>
  resource(orders, {
    unscoped: true,
    relations,
    computed: { terms: { requires: ['customer.terms'], response: z.int(), value: (row) => row.customer.terms } },
  });
//: transitions without `state` | 'open'
export const r35 = () => resource(orders, { unscoped: true, transitions: { pay: { from: ['open'], to: 'paid' } } });
//: an unknown state of a transition | to
export const r36 = () => resource(orders, { unscoped: true, state: 'status', transitions: { pay: { from: ['open'], to: 'payed' } } });
//: a transition from one state, not a list | from
export const r37 = () => resource(orders, { unscoped: true, state: 'status', transitions: { pay: { from: 'open', to: 'paid' } } });
//: a misspelt option of a transition | gaurd
export const r38 = () => resource(orders, { unscoped: true, state: 'status', transitions: { pay: { from: ['open'], to: 'paid', gaurd: () => true } } });
//: a guard that uses a misspelt column | totl
export const r39 = () =>
  resource(orders, { unscoped: true, state: 'status', transitions: { pay: { from: ['open'], to: 'paid', guard: (row) => row.totl !== '0' } } });
//: a misspelt hook | creat
export const r40 = () => resource(orders, { unscoped: true, hooks: { creat: async (_context, next) => next({} as never) } });
//: a hook that uses a misspelt input | qantity
export const r41 = () => resource(orders, { unscoped: true, hooks: { create: async ({ input }, next) => next({ ...input, owner_id: `${input.qantity}` }) } });
//: a nested relation that does not exist | itms
export const r42 = () => resource(orders, { unscoped: true, relations, nested: { itms: { input: ['sku'] } } });
//: a misspelt column of a nested relation | 'skuu'
export const r43 = () => resource(orders, { unscoped: true, relations, nested: { items: { input: ['skuu'] } } });
//: an event function that returns no audience | events
export const r44 = () => resource(orders, { unscoped: true, events: () => ({ type: 'a', data: {} }) });
//: a change that has no such member | befor
export const r45 = () => resource(orders, { unscoped: true, onChange: ({ befor }) => undefined });
//: admin rows with a misspelt column | statu
export const r46 = () => resource(orders, { unscoped: true, admin: { rows: { statu: 'open' } } });
//: a resource of columns, not of a model | orders.columns
export const r47 = () => resource(orders.columns, { unscoped: true });
//: a resource without options | resource
export const r48 = () => resource(orders);

const entries: Readonly<Record<string, { readonly owner_id: string }>> = {};
//: the id of the user in place of a condition | rows
export const r49 = () => resource(orders, { rows: ({ user }) => user.id });
//: an entry that may be missing in place of a condition | rows
export const r50 = () => resource(orders, { rows: ({ user }) => entries[user.id] });
//: an asynchronous rule whose entry may be missing | rows
export const r51 = () => resource(orders, { rows: async ({ user }) => entries[user.id] });
//: a rule that forgets some callers | rows
export const r52 = () => resource(orders, { rows: ({ user }) => (user.is_staff ? true : undefined) });
//: a list in place of a condition | rows
export const r53 = () => resource(orders, { relations, rows: ({ user }) => [{ owner_id: user.id }] });
//: a guard that returns nothing | () => undefined
export const r54 = () =>
  resource(orders, { owner: 'owner_id', state: 'status', transitions: { pay: { from: ['open'], to: 'paid', guard: () => undefined } } });
//: a rule that is not initialised | at startup
export const r55 = () => resource(orders, { tenant: 'org_id', ...({ rows: undefined } as object) });
//: admin rows without a column | at startup
export const r56 = () => createApp({ database: 'sqlite::memory:', mount: {}, resources: [resource(orders, { unscoped: true, input: ['total'], admin: { rows: {} } })] });
//: a hook that does not return the row | create
export const r57 = () => resource(orders, { unscoped: true, hooks: { create: async ({ input }, next) => void (await next(input as never)) } });
//: a relation that is a column | customer
export const r58 = () => resource(orders, { unscoped: true, relations: { customer: 'customer_id' } });
