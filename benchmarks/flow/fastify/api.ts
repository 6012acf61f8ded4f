import Fastify from 'fastify';
import { orderRoutes } from './orders.ts';

const app = Fastify({ ajv: { customOptions: { removeAdditional: false } } });
app.get('/health/ready', () => ({ status: 'ready' }));
app.register(orderRoutes, { prefix: '/v1/orders' });
await app.listen({ port: Number(process.env['PORT']), host: '127.0.0.1' });
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
