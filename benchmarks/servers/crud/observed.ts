// The orders of the generic controller twice in one process, plain and watched, in turns:
// node observed.ts <what watches them, see observers.ts> <database of the plain one> <database of the watched one>
import { servingInTurns } from '../../harness/alternating.ts';
import { observersOf } from '../observers.ts';
import { startKit } from './kit.ts';

const [mode = '', plain = '', watched = ''] = process.argv.slice(2);
await servingInTurns(await startKit(plain), await startKit(watched, observersOf(mode)));
