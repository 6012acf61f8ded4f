// Mistakes in routes, permissions, errors and applications. `//: what is wrong | the text that the compiler must mark`.
import { all, allowAny, any, Controller, command, createApp, defineErrors, domainEvent, hasScopes, isAuthenticated, isOwner, not, on, page, raw, route } from 'kit';
import { service, singleton } from 'kit/di';
import { clientThrottle } from 'kit/throttle';
import { z } from 'zod';
import { OrderController } from './shop.ts';

const response = z.object({ id: z.string() });
const place = command(z.object({ id: z.uuid() }), async ({ id }) => ({ id }));

//: a misspelt permission | permision
export const t1 = () => route.get('/', { permision: allowAny }, () => undefined);
//: a misspelt permission beside `response` | permision
export const t2 = () => route.get('/', { permision: allowAny, response }, () => ({ id: '' }));
//: no permission | { response }
export const t3 = () => route.get('/', { response }, () => ({ id: '' }));
//: a permission factory that is not called | hasScopes
export const t4 = () => route.get('/', { permission: hasScopes }, () => undefined);
//: no handler | get
export const t5 = () => route.get('/', { permission: allowAny });
//: a body without a response schema | ({ id: '' })
export const t6 = () => route.get('/', { permission: allowAny }, () => ({ id: '' }));
//: an asynchronous body without a response schema | ({ id: '' })
export const t7 = () => route.get('/', { permission: allowAny }, async () => ({ id: '' }));
//: a misspelt response | respone
export const t8 = () => route.get('/', { permission: allowAny, respone: response }, () => ({ id: '' }));
//: a body that does not fit the response schema | id
export const t9 = () => route.get('/', { permission: allowAny, response }, () => ({ id: 1 }));
//: a body that lacks a member of the response schema | ({})
export const t10 = () => route.get('/', { permission: allowAny, response }, () => ({}));
//: a response schema that is a plain object | id
export const t11 = () => route.get('/', { permission: allowAny, response: { id: 'string' } }, () => undefined);
//: a parameter that the path does not have | idd
export const t12 = () => route.get('/:id', { permission: allowAny, response }, ({ params }) => ({ id: params.idd }));
//: a member that the body does not have | nmae
export const t13 = () => route.post('/', { permission: allowAny, body: z.object({ name: z.string() }), response }, ({ body }) => ({ id: body.nmae }));
//: a member that the query does not have | limt
export const t14 = () => route.get('/', { permission: allowAny, query: z.object({ limit: z.string() }), response }, ({ query }) => ({ id: query.limt }));
//: a misspelt member of the context | usr
export const t15 = () => route.get('/', { permission: allowAny }, ({ usr }) => undefined);
//: a user that may be null | user
export const t16 = () => route.get('/', { permission: allowAny, response }, ({ user }) => ({ id: user.id }));
//: a misspelt member of the user | usrname
export const t17 = () => route.get('/', { permission: isAuthenticated, response }, ({ user }) => ({ id: user.usrname }));
//: a body on GET | body
export const t18 = () => route.get('/', { permission: allowAny, body: z.object({}) }, () => undefined);
//: a status as text | status
export const t19 = () => route.get('/', { permission: allowAny, status: '201' }, () => undefined);
//: a misspelt fact | sumary
export const t20 = () => route.get('/', { permission: allowAny, sumary: 'All' }, () => undefined);
//: a misspelt method | gte
export const t21 = () => route.gte('/', { permission: allowAny }, () => undefined);
//: options and handler without a path | get
export const t22 = () => route.get({ permission: allowAny }, () => undefined);
//: a command whose result does not fit the response schema | command
export const t23 = () => route.post('/', { permission: allowAny, response: z.object({ name: z.string() }), command: place });
//: a command and a handler | () => undefined
export const t24 = () => route.post('/', { permission: allowAny, response, command: place }, () => undefined);
//: a stream that returns a promise | Promise.resolve([1])
export const t25 = () => route.stream('/', { permission: allowAny }, () => Promise.resolve([1]));
//: a throttle that is a text | '10/min'
export const t26 = () => route.get('/', { permission: allowAny, throttles: ['10/min'] }, () => undefined);
//: permissions as a list | [isAuthenticated, isOwner()]
export const t27 = () => all([isAuthenticated, isOwner()]);
//: a permission factory inside any() | isOwner
export const t28 = () => any(isAuthenticated, isOwner);
//: not() of two permissions | isOwner()
export const t29 = () => not(isAuthenticated, isOwner());
//: a misspelt option of hasScopes() | allowUnscopd
export const t30 = () => hasScopes({ allowUnscopd: true });
//: an error without a status | gone
export const t31 = () => defineErrors('shop', { gone: { title: 'Gone.', detail: 'It is gone.' } });
//: an error that is not declared | soldout
export const t32 = () => defineErrors('shop', { sold_out: { status: 409, title: 'Sold out.', detail: 'It is sold out.' } }).soldout();
//: an event with data that does not fit | toFixed
export const t33 = () => on(domainEvent('placed', z.object({ id: z.string() })), ({ id }) => id.toFixed());
//: an app without routes | {}
export const t34 = () => createApp({});
//: a misspelt option of createApp() | databse
export const t35 = () => createApp({ mount: {}, databse: 'sqlite::memory:' });
//: a controller without a path below its version | '/v1'
export const t36 = () => createApp({ mount: { '/v1': OrderController } });
//: a service with a factory of another type | 1
export const t37 = () => singleton(service<string>('name'), {}, () => 1);
//: a page of something that is not a schema | 'order'
export const t38 = () => page('order');
//: options of a raw response | { stream: true }
export const t39 = () => raw('text/csv', { stream: true });
//: a raw body with a misspelt option | strem
export const t43 = () => raw(['text/csv'], { strem: true });
//: a rate without a period | '600'
export const t40 = () => clientThrottle('600');
//: a rate of an unknown period | '600/mn'
export const t41 = () => clientThrottle('600/mn');
//: a controller whose wrapped route is misspelt | sumary
export const t42 = () =>
  class extends Controller {
    list = route.get('/', { permission: allowAny }, () => undefined);
    override wrap = super.wrap;
    other = this.wrap('list', { sumary: '' });
  };
//: a controller in place of the versions | mount
export const t46 = () => createApp({ mount: OrderController });
