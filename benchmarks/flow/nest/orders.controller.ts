import { Body, Controller, Get, Headers, Param, ParseUUIDPipe, Patch, Post, Query, UseGuards } from '@nestjs/common';
import { type Caller, CurrentCaller, KeyGuard } from './key.guard.js';
import { CreateOrderDto, ListOrdersDto, UpdateOrderDto } from './orders.dto.js';
import { OrdersService } from './orders.service.js';

@Controller('v1/orders')
@UseGuards(KeyGuard)
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  create(@CurrentCaller() caller: Caller, @Body() body: CreateOrderDto, @Headers('idempotency-key') key?: string) {
    return this.orders.create(caller, body, key);
  }

  @Get()
  list(@CurrentCaller() caller: Caller, @Query() query: ListOrdersDto) {
    return this.orders.list(caller, query);
  }

  @Patch(':id')
  update(@CurrentCaller() caller: Caller, @Param('id', ParseUUIDPipe) id: string, @Body() body: UpdateOrderDto) {
    return this.orders.update(caller, id, body);
  }
}

@Controller('health')
export class HealthController {
  @Get('ready')
  ready() {
    return { status: 'ready' };
  }
}
