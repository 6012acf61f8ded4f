// What an editor shows; see editor.long.test.ts.
import { all, allowAny, Controller, createApp, defineErrors, domainEvent, hasScopes, isAuthenticated, isStaff, on, page, route } from 'kit';
import { hasGrant, objectActions } from 'kit/contrib/grants';
import { job, startJob } from 'kit/contrib/jobs';
import { CrudController, filter, many, one, resource, visibleTo } from 'kit/crud';
import { type Db, find, list, migration, model, t } from 'kit/db';
import { UploadController, type UploadPolicy } from 'kit/contrib/uploads';
import { WebhookEndpointController } from 'kit/contrib/webhooks';
import { service } from 'kit/di';
import { clientThrottle } from 'kit/throttle';
import { z } from 'zod';
import { customers, orderItems, orderResource, orders, relations } from './shop.ts';

declare const db: Db;
const OrderPaid = domainEvent('order.paid', z.object({ id: z.string(), total: z.number() }));

createApp;
// ^? export: createApp
model;
// ^? export: model
resource;
// ^? export: resource
CrudController;
// ^? export: CrudController
route;
// ^? export: route
route.get;
//    ^? export: route.get
route.post;
//    ^? export: route.post
Controller;
// ^? export: Controller
defineErrors;
// ^? export: defineErrors
hasScopes;
// ^? export: hasScopes
isAuthenticated;
// ^? export: isAuthenticated
all;
//^? export: all
allowAny;
// ^? export: allowAny
page;
//^? export: page
filter;
// ^? export: filter
one;
//^? export: one
many;
//^? export: many
visibleTo;
// ^? export: visibleTo
find;
//^? export: find
list;
//^? export: list
migration;
// ^? export: migration
t;
// export: t has no description of its own; its members do
t.uuidv7;
//  ^? export: t.uuidv7
job;
//^? export: job
startJob;
// ^? export: startJob
objectActions;
// ^? export: objectActions
hasGrant;
// ^? export: hasGrant
service;
// ^? export: service
clientThrottle;
// ^? export: clientThrottle

export const row = await find(db, customers, '1');
//            ^? a row
export const rows = await list(db, orderItems);
//            ^? rows
export const read = route.get('/:id', { permission: isAuthenticated }, ({ params, user }) => void [params, user]);
//                                                                        ^? the parameters of a path
//                                                                                ^? the user of a route

resource(orders, { owner: 'owner_id', rows: ({ user }) => ({ owner_id: user.id }), fields: { note: visibleTo(isStaff) } });
//                         ^| the owner
//                                                           ^| a condition
//                                                                                           ^| fields
resource(orders, { unscoped: true, relations, computed: { late: { requires: ['due_at', 'customer.terms'], response: z.boolean(), value: (row) => row.due_at === null } } });
//                                                                                                                                       ^? the row of a computed field
//                                                                                                                                                   ^| members of that row
resource(orders, { unscoped: true, relations, computed: { late: { requires: ['due_at', 'customer.terms'], response: z.boolean(), value: (row) => row.due_at === null } } });
//                                                                           ^| what a computed field requires
resource(orders, { unscoped: true, state: 'status', transitions: { pay: { from: ['open'], to: 'paid' } } });
//                                                                                ^| states
CrudController(orderResource, { permission: isStaff, filters: { status: ['eq'], total: ['gte'] } });
//                              ^| options of a controller
//                                                              ^| filters
//                                                                        ^| operators
CrudController(orderResource, { permission: isStaff, ordering: { by: ['total'], default: ['-total'] }, bulk: { create: true }, operations: { list: {} } });
//                                                                     ^| columns to order by
//                                                                                         ^| the default order
//                                                                                                             ^| bulk operations
//                                                                                                                                           ^| operations
many(() => orderItems, 'order_id', { order: ['sku'] });
//                      ^| the column of a to-many relation
model('notes', { id: t.uuidv7().pk(), title: t.text(80) }, { indexes: [{ columns: ['title'] }] });
//                                                                                  ^| columns of an index
const actions = objectActions(orders, { actions: ['view', 'change'], sets: { editor: ['view'] } });
//                                                                                     ^| actions of a set
hasGrant('view', actions);
//        ^| an action
clientThrottle('10/s');
//              ^| a rate
class Invoices extends UploadController {
  static override readonly policy: UploadPolicy = { bytesMax: 1 };
//                                                  ^| an upload policy
}
class Hooks extends WebhookEndpointController {
  static override readonly availableEvents = [orderResource.eventTypes.created, OrderPaid.name];
//                                                                     ^| event types of a resource
}
on(OrderPaid, ({ id }) => id);
//               ^| data of an event
export { Hooks, Invoices };
