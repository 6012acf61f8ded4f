// The orders by hand and by the toolkit, in turns: node both.ts <database of the one> <database of the other>
import { servingInTurns } from '../../harness/alternating.ts';
import { startByHand } from './bare.ts';
import { startKit } from './kit.ts';

const [byHand = '', kit = ''] = process.argv.slice(2);
await servingInTurns(await startByHand(byHand), await startKit(kit));
