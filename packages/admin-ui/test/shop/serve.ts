import process from 'node:process';
import { ordersModule } from './orders.ts';
import { Shop } from './shop.ts';

// A shop in a process of its own, for tests that stop it. Prints its address.
const shop = await Shop.open({ now: new Date().toISOString(), database: process.argv[2] as string, modules: [ordersModule()] });
process.stdout.write(`${shop.address}\n`);
