// A client of hey-api.
import { client } from "./hey/client.gen.js";
import { createRelayer, deleteRelayer, getRelayer, headRelayer, listRelayers, updateRelayer } from "./hey/index.js";

const { SERVER, TOKEN } = process.env;
client.setConfig({ baseUrl: SERVER, auth: () => TOKEN });
const mostWei = "115792089237316195423570985008687907853269984665640564039457584007913129639935";

const created = await createRelayer({
  body: {
    id: "hey", name: "EVM", network: "sepolia", network_type: "evm", paused: false, signer_id: "signer",
    notification_id: "alerts",
    policies: { gas_price_cap: mostWei, min_balance: 7, whitelist_receivers: ["0x0"] },
  },
});
if (created.data?.data.network_type !== "evm" || created.data.data.policies.min_balance !== 7) {
  throw new Error(JSON.stringify(created));
}
const text = await getRelayer({ path: { relayer_id: "hey" }, parseAs: "text" });
if (!String(text.data).includes(`"gas_price_cap":${mostWei}`)) {
  throw new Error(JSON.stringify(text));
}
const solana = await createRelayer({
  body: {
    name: "Solana", network: "mainnet-beta", network_type: "solana", paused: true, signer_id: "signer",
    policies: { swap_config: { strategy: "jupiter-swap", jupiter_swap_options: { priority_level: "veryHigh" } } },
  },
});
const data = solana.data?.data;
if (data?.network_type !== "solana" || data.policies.fee_payment_strategy !== "user") {
  throw new Error(JSON.stringify(solana));
}
const patched = await updateRelayer({
  path: { relayer_id: "hey" },
  body: { paused: true, notification_id: null, policies: { gas_price_cap: null } },
});
const evm = patched.data?.data;
if (evm?.network_type !== "evm" || !evm.paused || evm.notification_id !== undefined) {
  throw new Error(JSON.stringify(patched));
}
const page = await listRelayers({ query: { page: 1, per_page: 1 } });
if (page.data?.data.length !== 1) {
  throw new Error(JSON.stringify(page));
}
const head = await headRelayer({ path: { relayer_id: "hey" } });
if (head.response?.status !== 200) {
  throw new Error(`HEAD returned ${head.response?.status}`);
}
const deleted = await deleteRelayer({ path: { relayer_id: "hey" } });
const missing = await getRelayer({ path: { relayer_id: "hey" } });
if (deleted.data?.data !== "Relayer deleted successfully" || missing.error?.message !== "Relayer with ID hey not found") {
  throw new Error(JSON.stringify([deleted, missing]));
}
