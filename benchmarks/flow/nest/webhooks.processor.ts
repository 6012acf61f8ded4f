import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { Job } from 'bullmq';
import { Webhook } from 'standardwebhooks';
import { PrismaService } from './prisma.service.js';

interface Delivery {
  readonly endpoint: string;
  readonly event: { readonly id: string; readonly type: string; readonly timestamp: string; readonly data: object };
}

@Processor('webhooks', { concurrency: 100 })
export class WebhooksProcessor extends WorkerHost {
  constructor(private readonly prisma: PrismaService) {
    super();
  }

  async process({ data: { endpoint: id, event } }: Job<Delivery>): Promise<void> {
    const endpoint = await this.prisma.endpoint.findUnique({ where: { id } });
    if (endpoint === null) return;
    const { type, timestamp, data } = event;
    const body = JSON.stringify({ type, timestamp, data });
    const now = new Date();
    const response = await fetch(endpoint.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'webhook-id': event.id,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': new Webhook(endpoint.secret).sign(event.id, now, body),
      },
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(15_000),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`the endpoint answered ${response.status}`);
  }
}
