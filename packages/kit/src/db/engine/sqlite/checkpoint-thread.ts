// The thread of a `Checkpointer`. It has a connection of its own, and copies the log when it is told to.
import { parentPort, workerData } from 'node:worker_threads';
import { loadNodeSqlite } from './load-node-sqlite.ts';

const port = parentPort;
if (port === null) throw new Error('This file is run by a Checkpointer, in a thread.');
const database = new (loadNodeSqlite().DatabaseSync)(workerData as string, { timeout: 0 });
database.exec('pragma synchronous = normal');
const checkpoint = database.prepare('pragma wal_checkpoint(passive)');

port.on('message', (order: 'copy' | 'close') => {
  if (order === 'copy') return port.postMessage(checkpoint.get()?.['log']);
  database.close();
  port.close();
});
