// A client with the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { paths } from "./openapi.js";

const { SERVER, TOKEN } = process.env;
const client = createClient<paths>({ baseUrl: SERVER, headers: { Authorization: `Bearer ${TOKEN}` } });
const mostWei = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

const created = await client.POST("/api/v1/relayers", {
  body: {
    id: "fetch", name: "EVM", network: "sepolia", network_type: "evm", paused: false, signer_id: "signer",
    notification_id: "alerts",
    policies: { gas_price_cap: mostWei, min_balance: 7, whitelist_receivers: ["0x0"] },
  },
  parseAs: "text",
});
if (created.response.status !== 201 || !String(created.data).includes(`"gas_price_cap":${mostWei}`)) {
  throw new Error(`created ${created.data} ${JSON.stringify(created.error)}`);
}
const stellar = await client.POST("/api/v1/relayers", {
  body: {
    name: "Stellar", network: "mainnet", network_type: "stellar", paused: true, signer_id: "signer",
    policies: {
      fee_payment_strategy: "user",
      allowed_tokens: [
        { asset: "XLM", metadata: { kind: "native" } },
        { asset: "A", metadata: { kind: { classic: { code: "A", issuer: "G" } } } },
        { asset: "C", metadata: { kind: { contract: { contract_id: "C" } } } },
      ],
      swap_config: { strategies: ["soroswap"] },
    },
  },
});
const data = stellar.data?.data;
if (data?.network_type !== "stellar" || data.policies.allowed_tokens?.length !== 3) {
  throw new Error(JSON.stringify(stellar));
}
const patched = await client.PATCH("/api/v1/relayers/{relayer_id}", {
  params: { path: { relayer_id: "fetch" } },
  body: { paused: true, notification_id: null, policies: { gas_price_cap: null } },
});
const evm = patched.data?.data;
if (evm?.network_type !== "evm" || !evm.paused || evm.notification_id !== undefined || evm.policies.min_balance !== 7) {
  throw new Error(JSON.stringify(patched));
}
const missing = await client.GET("/api/v1/relayers/{relayer_id}", { params: { path: { relayer_id: "nobody" } } });
if (missing.error?.message !== "Relayer with ID nobody not found") {
  throw new Error(JSON.stringify(missing.error));
}
const head = await client.HEAD("/api/v1/relayers/{relayer_id}", { params: { path: { relayer_id: "fetch" } } });
if (head.response.status !== 200) {
  throw new Error(`HEAD returned ${head.response.status}`);
}
