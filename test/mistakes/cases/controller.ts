// Mistakes in CrudController(). `//: what is wrong | the text that the compiler must mark`.
import { hasScopes, isAuthenticated, isStaff } from 'kit';
import { count, CrudController, filter, fullText, sum } from 'kit/crud';
import { z } from 'zod';
import { orderResource, orders } from './shop.ts';

const permission = isAuthenticated;

//: a model in place of a resource | orders
export const c1 = () => CrudController(orders, { permission });
//: a model in place of a resource, as a base class | orders
export const c2 = () => class extends CrudController(orders, { permission }) {};
//: no permission | {}
export const c3 = () => CrudController(orderResource, {});
//: a misspelt permission | permision
export const c4 = () => CrudController(orderResource, { permision: isAuthenticated });
//: a permission factory that is not called | hasScopes
export const c5 = () => CrudController(orderResource, { permission: hasScopes });
//: an option of the resource | owner
export const c6 = () => CrudController(orderResource, { permission, owner: 'owner_id' });
//: a misspelt option | fliters
export const c7 = () => CrudController(orderResource, { permission, fliters: { status: ['eq'] } });
//: a misspelt filter | statuss
export const c8 = () => CrudController(orderResource, { permission, filters: { statuss: ['eq'] } });
//: a misspelt path of a filter | 'customer.nam'
export const c9 = () => CrudController(orderResource, { permission, filters: { 'customer.nam': ['eq'] } });
//: a misspelt operator | 'equals'
export const c10 = () => CrudController(orderResource, { permission, filters: { status: ['equals'] } });
//: an operator that the column does not have | 'contains'
export const c11 = () => CrudController(orderResource, { permission, filters: { quantity: ['contains'] } });
//: a text operator on an enum | 'starts'
export const c12 = () => CrudController(orderResource, { permission, filters: { status: ['starts'] } });
//: an operator that is not a list | status
export const c13 = () => CrudController(orderResource, { permission, filters: { status: 'eq' } });
//: a custom filter with a misspelt column | mine
export const c14 = () =>
  CrudController(orderResource, { permission, filters: { mine: filter(z.boolean(), (_value, { user }) => ({ ownr_id: user?.id ?? '' })) } });
//: a custom filter with a misspelt column inside `or` | mine
export const c15 = () =>
  CrudController(orderResource, {
    permission,
    filters: { mine: filter(z.boolean(), (_value, { user }) => ({ or: [{ owner_id: user?.id ?? '' }, { statu: 'open' }] })) },
  });
//: a custom filter that uses its value as another type | toUpperCase
export const c16 = () => CrudController(orderResource, { permission, filters: { mine: filter(z.boolean(), (value) => ({ note: value.toUpperCase() })) } });
//: a misspelt search column | 'nte'
export const c17 = () => CrudController(orderResource, { permission, search: ['nte'] });
//: a misspelt full-text column | search
export const c18 = () => CrudController(orderResource, { permission, search: fullText({ columns: ['nte'] }) });
//: a misspelt ordering column | 'totl'
export const c19 = () => CrudController(orderResource, { permission, ordering: { by: ['totl'] } });
//: a misspelt default ordering | '-totl'
export const c20 = () => CrudController(orderResource, { permission, ordering: { by: ['total'], default: ['-totl'] } });
//: an ordering as a list | ordering
export const c21 = () => CrudController(orderResource, { permission, ordering: ['total'] });
//: a misspelt relation to expand | 'custmer'
export const c22 = () => CrudController(orderResource, { permission, expand: ['custmer'] });
//: an unknown page style | style
export const c23 = () => CrudController(orderResource, { permission, page: { style: 'pages' } });
//: a misspelt page option | sise
export const c24 = () => CrudController(orderResource, { permission, page: { sise: 50 } });
//: a misspelt limit | filter
export const c25 = () => CrudController(orderResource, { permission, limits: { filter: 3 } });
//: a misspelt bulk operation | delete
export const c26 = () => CrudController(orderResource, { permission, bulk: { delete: true } });
//: an unknown bulk mode | mode
export const c27 = () => CrudController(orderResource, { permission, bulk: { create: true, mode: 'all' } });
//: an unknown export format | 'xlsx'
export const c28 = () => CrudController(orderResource, { permission, export: ['xlsx'] });
//: an import by a misspelt column | by
export const c29 = () => CrudController(orderResource, { permission, import: { formats: ['csv'], by: 'skuu' } });
//: statistics of a misspelt column | revenue
export const c30 = () => CrudController(orderResource, { permission, stats: { metrics: { orders: count(), revenue: sum('totl') } } });
//: statistics by a misspelt column | 'statu'
export const c31 = () => CrudController(orderResource, { permission, stats: { by: ['statu'], metrics: { orders: count() } } });
//: a metric that is not called | count
export const c32 = () => CrudController(orderResource, { permission, stats: { metrics: { orders: count } } });
//: a misspelt operation | destory
export const c33 = () => CrudController(orderResource, { permission, operations: { destory: false } });
//: a misspelt fact of an operation | sumary
export const c34 = () => CrudController(orderResource, { permission, operations: { list: { sumary: 'All' } } });
//: a misspelt lookup column | lookup
export const c35 = () => CrudController(orderResource, { permission, lookup: 'cod' });
//: a parent that is not a relation to one row | relation
export const c36 = () => CrudController(orderResource, { permission, parent: { relation: 'items' } });
//: a misspelt output column | 'totl'
export const c37 = () => CrudController(orderResource, { permission, output: ['totl'] });
//: an unknown rule for ETags | etag
export const c38 = () => CrudController(orderResource, { permission, etag: 'always' });
//: an override of an operation that is removed | create
export const c39 = () =>
  class extends CrudController(orderResource, { permission, operations: { create: false } }) {
    override create = this.wrap('create', {});
  };
//: a wrapped operation that does not exist | 'lst'
export const c40 = () =>
  class extends CrudController(orderResource, { permission }) {
    override list = this.wrap('lst', {});
  };
//: a misspelt fact of a wrapped operation | sumary
export const c41 = () =>
  class extends CrudController(orderResource, { permission }) {
    override list = this.wrap('list', { sumary: 'Yours' });
  };
//: a misspelt column in the rows of a custom route | statu
export const c42 = () =>
  class extends CrudController(orderResource, { permission }) {
    open = (context: never) => this.rows(context, { statu: 'open' });
  };
//: a misspelt column that a custom route writes | totl
export const c43 = () =>
  class extends CrudController(orderResource, { permission }) {
    close = (context: never) => this.write(context).update('1', { totl: '1.00' });
  };
//: a transition that does not exist | 'pya'
export const c44 = () =>
  class extends CrudController(orderResource, { permission: isStaff }) {
    pays = (context: never) => this.write(context).transition('1', 'pya');
  };

const entries: Readonly<Record<string, { readonly owner_id: string }>> = {};
//: an entry that may be missing in place of a filter's condition | mine
export const c45 = () => CrudController(orderResource, { permission, filters: { mine: filter(z.string(), (name) => entries[name]) } });
//: the value in place of a filter's condition | mine
export const c46 = () => CrudController(orderResource, { permission, filters: { mine: filter(z.string(), (name) => name) } });
//: a search backend that returns nothing | search
export const c47 = () => CrudController(orderResource, { permission, search: { name: 'own', columns: ['note'], where: () => undefined } });
//: filters as a list | 'status'
export const c49 = () => CrudController(orderResource, { permission, filters: ['status'] });
