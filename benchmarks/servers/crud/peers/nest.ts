// NestJS on Express with @dataui/crud and TypeORM, as its documentation has it: an entity, a service, @Crud and @CrudAuth with the owner as
// filter and as value of new rows. Decorators are called as functions, because sources here run without a transpiler. Arguments: the
// database, the peers' folder.
import type { AddressInfo } from 'node:net';
import { uuidv7 } from 'kit/db';
import { serving } from '../../../harness/server-process.ts';
import { callerOf, STATUSES } from '../shop.ts';
import { loadPeer } from './load-peer.ts';

const [database = '', folder = ''] = process.argv.slice(2);
await loadPeer(folder, 'reflect-metadata');
const nest = await loadPeer(folder, '@nestjs/common');
const { NestFactory } = await loadPeer(folder, '@nestjs/core');
const { Crud, CrudAuth } = await loadPeer(folder, '@dataui/crud');
const { TypeOrmCrudService } = await loadPeer(folder, '@dataui/crud-typeorm');
const { DataSource, Entity, Column, PrimaryColumn, CreateDateColumn, UpdateDateColumn, VersionColumn, BeforeInsert } = await loadPeer(
  folder,
  'typeorm',
);
const { IsIn, IsInt, IsOptional, IsString, Length, Matches, Max, MaxLength, Min } = await loadPeer(folder, 'class-validator');

class Order {
  declare id: string;
  assignId(): void {
    this.id ??= uuidv7();
  }
}
type Decorator = (target: object, name: string, descriptor?: PropertyDescriptor) => void;
const member = (name: string, type: unknown, ...decorators: Decorator[]) => {
  Reflect.defineMetadata('design:type', type, Order.prototype, name);
  for (const each of decorators) each(Order.prototype, name);
};
const UPDATE = { groups: ['CRUD-UPDATE'] };
const BOTH = { groups: ['CRUD-CREATE', 'CRUD-UPDATE'] };
member('id', String, PrimaryColumn({ type: 'uuid' }));
member('owner_id', String, Column({ type: 'uuid' }));
member('customer_id', String, Column({ type: 'uuid', nullable: true }));
member('item', String, Column(), IsOptional(UPDATE), IsString(BOTH), Length(1, 120, BOTH));
member('status', String, Column(), IsOptional(BOTH), IsIn(STATUSES, BOTH));
member('quantity', Number, Column({ type: 'int' }), IsOptional(UPDATE), IsInt(BOTH), Min(1, BOTH), Max(1000, BOTH));
member('total', String, Column({ type: 'numeric' }), IsOptional(UPDATE), Matches(/^-?\d{1,10}(\.\d{1,2})?$/, BOTH));
member('note', String, Column({ type: 'text', nullable: true }), IsOptional(BOTH), IsString(BOTH), MaxLength(500, BOTH));
member('created_at', Date, CreateDateColumn({ type: 'timestamptz' }));
member('updated_at', Date, UpdateDateColumn({ type: 'timestamptz' }));
member('version', Number, VersionColumn());
BeforeInsert()(Order.prototype, 'assignId', Object.getOwnPropertyDescriptor(Order.prototype, 'assignId'));
Entity('orders')(Order);

const source = new DataSource({ type: 'postgres', url: database, entities: [Order], extra: { max: 16 } });
await source.initialize();

class Guard {
  canActivate(context: { switchToHttp(): { getRequest(): { headers: Record<string, string | undefined>; user?: object } } }): boolean {
    const request = context.switchToHttp().getRequest();
    const caller = callerOf(request.headers['authorization']);
    if (caller === null) throw new nest.UnauthorizedException();
    request.user = caller;
    return true;
  }
}
nest.Injectable()(Guard);

class OrderController {
  service = new TypeOrmCrudService(source.getRepository(Order));
}
// Decorators of a class are applied from the bottom to the top.
CrudAuth({
  property: 'user',
  filter: (user: { id: string }) => ({ owner_id: user.id }),
  persist: (user: { id: string }) => ({ owner_id: user.id }),
})(OrderController);
Crud({
  model: { type: Order },
  params: { id: { field: 'id', type: 'uuid', primary: true } },
  query: { limit: 50, maxLimit: 1000, alwaysPaginate: false },
  routes: { only: ['getOneBase', 'getManyBase', 'createOneBase', 'updateOneBase'] },
})(OrderController);
nest.UseGuards(Guard)(OrderController);
nest.Controller('v1/orders')(OrderController);
// oxlint-disable-next-line typescript/no-extraneous-class -- a Nest module is an empty class with metadata
class AppModule {}
nest.Module({ controllers: [OrderController] })(AppModule);

const app = await NestFactory.create(AppModule, { logger: false });
await app.listen(0, '127.0.0.1');
serving((app.getHttpServer() as { address(): AddressInfo }).address().port);

declare global {
  // oxlint-disable-next-line typescript/no-namespace -- reflect-metadata adds to the global Reflect
  namespace Reflect {
    function defineMetadata(key: string, value: unknown, target: object, name: string): void;
  }
}
