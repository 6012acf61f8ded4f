import type { Command as CommanderCommand } from 'commander';
import type { CliContext } from './context.ts';

/** Declares the arguments, options and action of a command that is part of the program itself and may look behind the modules' context. */
export type CoreCommand = (command: CommanderCommand, context: CliContext) => void;
