// NestJS on Fastify, as its documentation has it: a controller, a guard, a validation pipe. Decorators are called as functions,
// because sources here run without a transpiler. The packages come from the peers' folder in the first argument.
import type { AddressInfo } from 'node:net';
import { peerUrl } from '../harness/peers.ts';
import { serving } from '../harness/server-process.ts';
import { createOrder, findOrder, OrderId, OrderIn, userOf, type OrderRow } from './orders.ts';

type Decorator = (...target: unknown[]) => void;
type DecoratorFactory = (...args: unknown[]) => Decorator;
interface NestCommon {
  readonly Body: DecoratorFactory;
  readonly Controller: DecoratorFactory;
  readonly Get: DecoratorFactory;
  readonly HttpCode: DecoratorFactory;
  readonly Module: DecoratorFactory;
  readonly Param: DecoratorFactory;
  readonly Post: DecoratorFactory;
  readonly SetMetadata: DecoratorFactory;
  readonly UseGuards: DecoratorFactory;
  readonly HttpException: new (body: object, status: number) => Error;
}
interface NestApp {
  listen(port: number, host: string): Promise<unknown>;
  getHttpServer(): { address(): AddressInfo };
}
interface NestCore {
  readonly NestFactory: { create(module: unknown, adapter: unknown, options: object): Promise<NestApp> };
}

const folder = process.argv[2] ?? '';
const load = async <T>(name: string): Promise<T> => {
  const loaded = (await import(peerUrl(folder, name))) as { default?: object };
  return { ...loaded, ...loaded.default } as T;
};
await load('reflect-metadata');
const nest = await load<NestCommon>('@nestjs/common');
const { NestFactory } = await load<NestCore>('@nestjs/core');
const { FastifyAdapter } = await load<{ FastifyAdapter: new () => object }>('@nestjs/platform-fastify');

const scopes = ['orders:*'];
class ScopeGuard {
  canActivate(context: {
    switchToHttp(): { getRequest(): { headers: Record<string, string | undefined> } };
    getHandler(): object;
  }): boolean {
    const { headers } = context.switchToHttp().getRequest();
    if (userOf(headers['authorization']) === null) throw new nest.HttpException({ code: 'not_authenticated' }, 401);
    const needed = Reflect.getMetadata('scope', context.getHandler()) as string;
    const resource = `${needed.split(':', 1)[0]}:*`;
    return scopes.some((scope) => scope === '*' || scope === needed || scope === resource);
  }
}

class ZodPipe {
  readonly #schema: { safeParse(value: unknown): { success: boolean; data?: unknown } };
  constructor(schema: { safeParse(value: unknown): { success: boolean; data?: unknown } }) {
    this.#schema = schema;
  }
  transform(value: unknown): unknown {
    const result = this.#schema.safeParse(value);
    if (!result.success) throw new nest.HttpException({ code: 'validation_error' }, 422);
    return result.data;
  }
}

const columns = ({ id, customer, total, status, created_at }: OrderRow) => ({ id, customer, total, status, created_at });

class OrderController {
  retrieve({ id }: { id: string }): object {
    const order = findOrder(id);
    if (order === undefined) throw new nest.HttpException({ code: 'not_found' }, 404);
    return columns(order);
  }
  create(body: Parameters<typeof createOrder>[0]): object {
    return columns(createOrder(body));
  }
}

function decorate(
  method: 'retrieve' | 'create',
  verb: Decorator,
  argument: DecoratorFactory,
  schema: ConstructorParameters<typeof ZodPipe>[0],
  scope: string,
): void {
  const descriptor = Object.getOwnPropertyDescriptor(OrderController.prototype, method);
  verb(OrderController.prototype, method, descriptor);
  nest.SetMetadata('scope', scope)(OrderController.prototype, method, descriptor);
  argument(new ZodPipe(schema))(OrderController.prototype, method, 0);
}
decorate('retrieve', nest.Get(':id'), nest.Param, OrderId, 'orders:read');
decorate('create', nest.Post(), nest.Body, OrderIn, 'orders:write');
nest.UseGuards(ScopeGuard)(OrderController);
nest.Controller('v1/orders')(OrderController);
// oxlint-disable-next-line typescript/no-extraneous-class -- a Nest module is an empty class with metadata
class AppModule {}
nest.Module({ controllers: [OrderController] })(AppModule);

const app = await NestFactory.create(AppModule, new FastifyAdapter(), { logger: false });
await app.listen(0, '127.0.0.1');
serving(app.getHttpServer().address().port);

declare global {
  // oxlint-disable-next-line typescript/no-namespace -- reflect-metadata adds to the global Reflect
  namespace Reflect {
    function getMetadata(key: string, target: object): unknown;
  }
}
