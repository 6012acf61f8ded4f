export { initial } from './0001_initial.ts';
