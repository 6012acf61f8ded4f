// The argument is the database.
import type { AddressInfo } from 'node:net';
import { serving } from '../../harness/server-process.ts';
import { startKit } from './kit.ts';

const [database = ''] = process.argv.slice(2);
serving(((await startKit(database)).address() as AddressInfo).port);
