import { createHash, randomUUID } from 'node:crypto';
import { InjectQueue } from '@nestjs/bullmq';
import { Injectable, NotFoundException, UnprocessableEntityException } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { v7 as uuidv7 } from 'uuid';
import { type Order, Prisma } from './generated/client.js';
import type { Caller } from './key.guard.js';
import type { CreateOrderDto, ListOrdersDto, UpdateOrderDto } from './orders.dto.js';
import { PrismaService } from './prisma.service.js';

const present = ({ id, item, quantity, note, status, createdAt, updatedAt }: Order) => ({
  id,
  item,
  quantity,
  note,
  status,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});

@Injectable()
export class OrdersService {
  constructor(
    private readonly prisma: PrismaService,
    @InjectQueue('webhooks') private readonly webhooks: Queue,
  ) {}

  async create(caller: Caller, input: CreateOrderDto, key: string | undefined) {
    const now = new Date();
    const order: Order = {
      id: uuidv7(),
      ownerId: caller.id,
      item: input.item,
      quantity: input.quantity,
      note: input.note ?? null,
      status: 'open',
      createdAt: now,
      updatedAt: now,
    };
    const response = present(order);
    const digest = createHash('sha256')
      .update(JSON.stringify([input.item, input.quantity, input.note]))
      .digest('hex');
    const writes = [
      this.prisma.order.create({ data: order }),
      this.prisma.auditEntry.create({ data: this.entry(caller, 'order.created', order.id, null, response) }),
    ];
    if (key !== undefined)
      writes.unshift(this.prisma.idempotencyKey.create({ data: { ownerId: caller.id, key, digest, response, createdAt: now } }) as never);
    const endpoints = this.endpointsOf(caller);
    try {
      await this.prisma.$transaction(writes);
    } catch (error) {
      if (!(error instanceof Prisma.PrismaClientKnownRequestError) || error.code !== 'P2002' || key === undefined) throw error;
      const stored = await this.prisma.idempotencyKey.findUniqueOrThrow({ where: { ownerId_key: { ownerId: caller.id, key } } });
      if (stored.digest !== digest) throw new UnprocessableEntityException('this key was used with another body');
      return stored.response;
    }
    await this.announce(await endpoints, 'order.created', response);
    return response;
  }

  async list(caller: Caller, { status, limit, cursor }: ListOrdersDto) {
    const rows = await this.prisma.order.findMany({
      where: { ownerId: caller.id, ...(status && { status }), ...(cursor && { id: { lt: cursor } }) },
      orderBy: { id: 'desc' },
      take: limit + 1,
    });
    const items = rows.slice(0, limit).map(present);
    return { items, next: rows.length > limit ? items.at(-1)?.id : null };
  }

  async update(caller: Caller, id: string, changes: UpdateOrderDto) {
    const endpoints = this.endpointsOf(caller);
    const { before, after } = await this.prisma.$transaction(async (tx) => {
      const [found] = await tx.$queryRaw<Order[]>`
        select id, owner_id as "ownerId", item, quantity, note, status, created_at as "createdAt", updated_at as "updatedAt"
        from orders where id = ${id}::uuid and owner_id = ${caller.id} for update`;
      if (found === undefined) throw new NotFoundException();
      const changed = await tx.order.update({ where: { id }, data: { ...changes, updatedAt: new Date() } });
      await tx.auditEntry.create({ data: this.entry(caller, 'order.updated', id, present(found), present(changed)) });
      return { before: found, after: changed };
    });
    const response = present(after);
    await this.announce(await endpoints, 'order.updated', { ...response, previous: present(before) });
    return response;
  }

  private entry(caller: Caller, action: string, orderId: string, before: object | null, after: object) {
    return { id: uuidv7(), at: new Date(), actorId: caller.id, keyId: caller.keyId, action, orderId, ...(before && { before }), after };
  }

  /** Asked while the transaction runs. */
  private endpointsOf(caller: Caller): Promise<{ id: string }[]> {
    const found = this.prisma.endpoint.findMany({ where: { ownerId: caller.id }, select: { id: true } }).then((rows) => rows);
    found.catch(() => undefined);
    return found;
  }

  /** One job per endpoint, so that one that is down does not make the other wait. */
  private async announce(endpoints: readonly { id: string }[], type: string, data: object): Promise<void> {
    const event = { id: `evt_${randomUUID()}`, type, timestamp: new Date().toISOString(), data };
    await this.webhooks.addBulk(
      endpoints.map(({ id }) => ({
        name: 'deliver',
        data: { endpoint: id, event },
        opts: { attempts: 10, backoff: { type: 'exponential', delay: 1000 }, removeOnComplete: true },
      })),
    );
  }
}
